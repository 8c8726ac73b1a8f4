"""Admission plugins for all kinds with four separate processes: each service runs them for its own resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.definitions import definition
from support.https_client import HttpsClient
from support.services import NAMES, running_services
from support.waiting import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CREATED: dict[str, tuple[str, dict[str, Any]]] = {
    "core": ("/api/v1/namespaces/{}/configmaps", {"metadata": {"name": "x"}}),
    "auth": ("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", {"metadata": {"name": "x"}, "rules": []}),
    "extensions": (
        "/apis/provided.example.com/v1/namespaces/{}/widgets",
        {"apiVersion": "provided.example.com/v1", "kind": "Widget", "metadata": {"name": "x"}},
    ),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    flags = ("--enable-admission-plugins=NamespaceAutoProvision",)
    with running_services(tmp_path_factory.mktemp("four-plugins"), **dict.fromkeys(NAMES, flags)) as services:
        client = HttpsClient(services.kubeconfig)
        assert client.call("POST", CRDS, definition("provided.example.com", "Widget")).status == 201
        until(lambda: client.call("GET", "/apis/provided.example.com/v1/widgets").status == 200)
        yield client


@pytest.mark.parametrize("service", CREATED)
def test_each_service_creates_missing_namespaces(client: HttpsClient, service: str) -> None:
    path, body = CREATED[service]
    until(lambda: client.call("POST", path.format(f"for-{service}"), body).status in (201, 409))
    assert client.call("GET", f"/api/v1/namespaces/for-{service}").status == 200


@pytest.fixture(scope="module")
def quoted(client: HttpsClient) -> str:
    """Return a namespace whose quota allows one more object of each resource."""
    assert client.call("POST", "/api/v1/namespaces", {"metadata": {"name": "quoted"}}).status == 201
    until(lambda: client.call("GET", "/api/v1/namespaces/quoted/configmaps/kube-root-ca.crt").status == 200)
    hard = {
        "count/configmaps": "2",
        "count/roles.rbac.authorization.k8s.io": "1",
        "count/widgets.provided.example.com": "1",
    }
    quotas = "/api/v1/namespaces/quoted/resourcequotas"
    assert client.call("POST", quotas, {"metadata": {"name": "few"}, "spec": {"hard": hard}}).status == 201
    until(lambda: (client.call("GET", f"{quotas}/few").body["status"].get("used") or {}).keys() == hard.keys())
    return quotas


@pytest.mark.parametrize("service", CREATED)
def test_each_service_charges_the_quota(client: HttpsClient, quoted: str, service: str) -> None:
    path, body = CREATED[service]
    path = path.format("quoted")
    assert client.call("POST", path, body).status == 201
    rejected = client.call("POST", path, {**body, "metadata": {"name": "y"}})
    assert rejected.status == 403
    assert "exceeded quota: few, requested: count/" in rejected.message
    status = client.call("GET", f"{quoted}/few").body["status"]
    counted = next(name for name in status["hard"] if path.rsplit("/", 1)[1] in name)
    assert status["used"][counted] == status["hard"][counted]
    assert client.call("DELETE", f"{path}/x").status == 200
    # once the controller has released the usage
    until(lambda: client.call("POST", path, {**body, "metadata": {"name": "y"}}).status == 201)
