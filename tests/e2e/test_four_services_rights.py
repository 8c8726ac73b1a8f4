"""Identities of the four services as separate processes: RBAC allows each service its own work and forbids that of the
others.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.definitions import definition
from support.identity import identity_of
from support.services import Services, running_services
from support.waiting import until

CRD = definition("rights.example.com", "Chest")
CHEST = {"apiVersion": "rights.example.com/v1", "kind": "Chest", "metadata": {"name": "c", "namespace": "rights"}}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("rights")
    policy = directory / "policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n"
        "rules: [{level: Metadata, userGroups: ['system:tetrapod:services']}, {level: None}]\n"
    )
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.log'}")
    with running_services(directory, aggregator=flags) as found:
        until(lambda: found.kubectl.run("-n", "default", "get", "serviceaccount", "default").returncode == 0)
        yield found


def audited(services: Services) -> list[Any]:
    log: Path = services.directory / "audit.log"
    return [json.loads(line) for line in log.read_text().splitlines()]


def ask(services: Services, service: str, method: str, url: str, body: Any = None) -> int:
    """Send a request as a service, with its client certificate."""
    directory = services.certs / service
    context = ssl.create_default_context(cafile=str(directory / "ca.crt"))
    context.load_cert_chain(directory / "client.crt", directory / "client.key")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_controllers_work_across_services_without_rejected_requests(services: Services) -> None:
    services.kubectl("create", "namespace", "rights")
    services.kubectl("apply", "-f", "-", stdin=json.dumps(CRD))
    until(lambda: services.kubectl.run("apply", "-f", "-", stdin=json.dumps(CHEST)).returncode == 0)
    uid = services.kubectl("-n", "rights", "get", "chest", "c", "-o", "jsonpath={.metadata.uid}")
    owner = {"apiVersion": CHEST["apiVersion"], "kind": "Chest", "name": "c", "uid": uid}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "rights", "ownerReferences": [owner]},
        "rules": [],
    }
    services.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    aggregated = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "see-chests", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["rights.example.com"], "resources": ["chests"], "verbs": ["get"]}],
    }
    services.kubectl("apply", "-f", "-", stdin=json.dumps(aggregated))
    until(lambda: "rights.example.com" in services.kubectl("get", "clusterrole", "view", "-o", "json"))
    services.kubectl("-n", "rights", "delete", "chest", "c")
    until(lambda: services.kubectl.run("-n", "rights", "get", "role", "r").returncode != 0)
    until(lambda: services.kubectl.run("apply", "-f", "-", stdin=json.dumps(CHEST)).returncode == 0)
    services.kubectl("delete", "namespace", "rights", "--timeout=50s")
    services.kubectl("delete", "crd", "chests.rights.example.com", "--timeout=50s")
    events = audited(services)
    assert {event["user"]["username"] for event in events} >= {
        "system:tetrapod:core",
        "system:tetrapod:extensions",
        "system:tetrapod:auth",
    }
    assert [event for event in events if event["responseStatus"].get("code") == 403] == []
    assert not any("system:masters" in event["user"]["groups"] for event in events)


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        ("extensions", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
        ("extensions", "POST", "/api/v1/namespaces/default/pods"),
        ("extensions", "DELETE", "/api/v1/namespaces/default"),
        ("auth", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        ("auth", "DELETE", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"),
        ("core", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("aggregator", "GET", "/api/v1/namespaces/default/secrets"),
    ],
)
def test_a_service_has_no_rights_for_the_work_of_others(
    services: Services, service: str, method: str, path: str
) -> None:
    body: Any = {} if method == "POST" else None
    assert ask(services, service, method, services.url + path, body) == 403


@pytest.mark.parametrize("service", ["aggregator", "extensions", "auth", "admin"])
def test_auth_creates_tokens_only_for_core(services: Services, service: str) -> None:
    """Other services and administrators are rejected; core asks on behalf of its users, under its own identity."""
    auth = services.address("auth")
    question = {"namespace": "default", "account": "default", "secret": "s"}
    if service == "admin":
        admin = identity_of(services.kubeconfig)
        (services.certs / "admin" / "ca.crt").write_bytes(services.ca.read_bytes())
        (services.certs / "admin" / "client.crt").write_bytes(admin.certificate)
        (services.certs / "admin" / "client.key").write_bytes(admin.key)
    assert ask(services, service, "POST", f"{auth}/internal/tetrapod/secrettokens", question) == 403
    assert ask(services, "core", "POST", f"{auth}/internal/tetrapod/secrettokens", question) == 200


def test_only_auth_has_the_token_keys(services: Services) -> None:
    assert sorted(path.parent.name for path in services.certs.glob("*/sa.key")) == ["auth", "ca"]


def test_requests_between_services_are_exempt_from_queuing(services: Services) -> None:
    """A FlowSchema exempts the services, because they are not administrators.

    A single process has no such FlowSchema.
    """
    found = json.loads(services.kubectl("get", "flowschema", "tetrapod-services", "-o", "json"))
    assert found["spec"]["priorityLevelConfiguration"]["name"] == "exempt"
    assert {"type": "Dangling", "status": "False"}.items() <= {
        key: condition[key] for condition in found["status"]["conditions"] for key in ("type", "status")
    }.items()
