"""The health checks and paths of the aggregator with four services are those of all services, as upstream's."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.https_client import HttpsClient
from support.services import Services, running_services

RECORDING = Path(__file__).parents[1] / "contract" / "recordings" / "disc-health-verbose.json"
OWN: Final = [
    "[+]poststarthook/start-authorization-informers ok",
    "[+]poststarthook/start-service-discovery ok",
    "[+]service/core ok",
    "[+]service/auth ok",
    "[+]service/extensions ok",
]
"""Checks that kube-apiserver does not have."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_services(tmp_path_factory.mktemp("four")) as services:
        yield services


def recorded() -> list[Any]:
    steps: list[Any] = json.loads(RECORDING.read_text())["steps"]
    return [(step["request"].removeprefix("GET "), step["answer"]["body"]) for step in steps]


@pytest.mark.parametrize(("path", "body"), [step for step in recorded() if "verbose" in step[0]])
def test_verbose_checks_are_those_of_upstream_and_of_the_connections(services: Services, path: str, body: str) -> None:
    lines = HttpsClient(services.kubeconfig).call("GET", path).body.splitlines()
    assert [line for line in lines if line not in OWN] == body.splitlines()
    assert [line for line in OWN if line not in lines] == []


def test_checks_of_other_services_have_paths(services: Services) -> None:
    client = HttpsClient(services.kubeconfig)
    assert client.call("GET", "/livez/poststarthook/crd-informer-synced")[:2] == (200, "ok")
    assert client.call("GET", "/readyz/poststarthook/rbac/bootstrap-roles")[:2] == (200, "ok")
    assert client.call("GET", "/livez/poststarthook/nosuch").status == 404


def test_the_list_of_paths_has_all_checks_and_the_openid_documents(services: Services) -> None:
    client = HttpsClient(services.kubeconfig)
    paths = client.call("GET", "/").body["paths"]
    names = [line.split()[0].removeprefix("[+]") for line in recorded()[0][1].splitlines()[:-1]]
    expected = {f"/healthz/{name}" for name in names} | {"/.well-known/openid-configuration", "/openid/v1/jwks"}
    assert expected - set(paths) == set()
    assert paths == sorted(set(paths))


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE"])
def test_anonymous_users_may_only_get_health(services: Services, method: str) -> None:
    anonymous = HttpsClient(services.kubeconfig, headers={"impersonate-user": "system:anonymous"})
    assert anonymous.call("GET", "/healthz").status == 200
    assert anonymous.call(method, "/healthz").status == 403


@pytest.mark.parametrize("path", ["/api/v7/pods", "/apis/apps/v7", "/apis/apps/v7/deployments"])
def test_unknown_versions_are_a_status(services: Services, path: str) -> None:
    reply = HttpsClient(services.kubeconfig).call("GET", path)
    assert reply.status == 404
    assert reply.body["message"] == "the server could not find the requested resource"


def test_a_stopped_service_fails_verbose_checks_only(services: Services) -> None:
    """A probe, which asks without `verbose`, must not restart the aggregator because another service is down."""
    client = HttpsClient(services.kubeconfig)
    services.stop("extensions", signal.SIGKILL)
    reply = client.until(lambda reply: reply.status == 500, "GET", "/livez?verbose")
    failed = [line for line in reply.body.splitlines() if line.startswith("[-]")]
    assert "[-]poststarthook/crd-informer-synced failed: reason withheld" in failed
    assert "[-]service/extensions failed: reason withheld" in failed
    assert reply.body.splitlines()[-1] == "livez check failed"
    assert client.call("GET", "/livez").body == "ok"
    assert client.call("GET", "/readyz").body == "ok"
    single = client.call("GET", "/livez/poststarthook/crd-informer-synced")
    assert single[:2] == (500, "internal server error: the service cannot be reached\n")
    services.start("extensions")
    services.wait_ready("extensions")
    client.until(lambda reply: reply.status == 200, "GET", "/livez?verbose")
