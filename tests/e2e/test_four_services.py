"""kubectl with four services over one etcd: the same behaviour as in one process, and each service can be restarted."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.definitions import definition, version
from support.kubectl import wait_established
from support.services import NAMES, Services, running_services
from support.waiting import until

TOKENS = Path(__file__).parents[1] / "contract" / "tokens.csv"
SIZED = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}},
}
CRD = definition("four.example.com", "Widget", version(schema=SIZED))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    flags = {"auth": (f"--token-auth-file={TOKENS}",), "core": ("-v=2",)}
    with running_services(tmp_path_factory.mktemp("four"), **flags) as services:
        yield services


def test_every_local_apiservice_is_available(services: Services) -> None:
    out = services.kubectl("get", "apiservices", "-o", "json")
    states = {
        item["metadata"]["name"]: item["status"]["conditions"][0]["status"]
        for item in json.loads(out)["items"]
        if (item.get("status") or {}).get("conditions")
    }
    assert {"v1.", "v1.apps", "v1.rbac.authorization.k8s.io", "v1.apiextensions.k8s.io"} <= states.keys()
    assert set(states.values()) == {"True"}


def test_the_first_attempt_to_lead_succeeds_in_a_new_cluster(services: Services) -> None:
    """A failed attempt would delay the controllers, and with them the first ServiceAccounts, by up to 4.4 seconds."""
    lease = "leader lease kube-system/tetrapod-core"
    until(lambda: f"acquired {lease}" in services.log("core").read_text())
    log = services.log("core").read_text()
    assert log.count(f"attempting to acquire {lease}") == 1
    assert "error with lease kube-system/tetrapod-core" not in log


def test_a_namespace_gets_its_account_and_is_deleted_with_its_contents(services: Services) -> None:
    services.kubectl("create", "namespace", "life")
    until(lambda: services.kubectl.run("-n", "life", "get", "serviceaccount", "default").returncode == 0)
    services.kubectl("-n", "life", "create", "deployment", "web", "--image=nginx")
    services.kubectl("delete", "namespace", "life", "--timeout=50s")
    assert "not found" in services.kubectl.run("get", "namespace", "life").stderr


def test_custom_resources_are_served_as_soon_as_they_are_established(services: Services) -> None:
    services.kubectl("apply", "-f", "-", stdin=json.dumps(CRD))
    wait_established(services.kubectl, "widgets.four.example.com")
    widget = {"apiVersion": "four.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
    until(lambda: services.kubectl.run("apply", "-f", "-", stdin=json.dumps(widget)).returncode == 0)
    assert services.kubectl("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "3"


def test_the_aggregator_accepts_tokens_that_auth_issued(services: Services) -> None:
    token = services.kubectl("create", "token", "default").strip()
    argv = [
        "kubectl",
        "--server",
        services.url,
        "--certificate-authority",
        str(services.ca),
        "--token",
        token,
        "auth",
        "whoami",
    ]
    out = subprocess.run(
        [*argv, "-o", "json"], check=True, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"}
    )
    assert json.loads(out.stdout)["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"


def test_the_aggregator_serves_the_token_keys(services: Services) -> None:
    about = json.loads(services.kubectl("get", "--raw", "/.well-known/openid-configuration"))
    assert about["jwks_uri"] == f"{services.url}/openid/v1/jwks"
    assert json.loads(services.kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]


def test_a_role_binding_takes_effect_at_once_in_every_service(services: Services) -> None:
    def may() -> bool:
        asked = services.kubectl.run("auth", "can-i", "list", "widgets.four.example.com", "--as=carol", "-n", "default")
        return asked.stdout.strip() == "yes"

    assert not may()
    services.kubectl("create", "rolebinding", "carol-views", "--clusterrole=admin", "--user=carol", "-n", "default")
    until(lambda: services.kubectl.run("get", "pods", "--as=carol", "-n", "default").returncode == 0)


@pytest.mark.parametrize("name", NAMES)
def test_restarting_a_service_loses_no_data(services: Services, name: str) -> None:
    services.kubectl("create", "configmap", f"kept-{name}", "--from-literal=a=b", "-n", "default")
    assert services.stop(name, signal.SIGTERM) == 0
    services.start(name, *((f"--token-auth-file={TOKENS}",) if name == "auth" else ()))
    services.wait_ready(name)
    until(lambda: services.kubectl.run("get", "configmap", f"kept-{name}", "-n", "default").returncode == 0)
    assert services.kubectl("get", "configmap", f"kept-{name}", "-n", "default", "-o", "jsonpath={.data.a}") == "b"


def test_a_stopped_service_affects_no_other_group(services: Services) -> None:
    services.stop("extensions", signal.SIGKILL)
    try:
        services.kubectl("get", "namespaces")
        services.kubectl("get", "clusterroles", "view")
    finally:
        services.start("extensions")
        services.wait_ready("extensions")
    until(lambda: services.kubectl.run("get", "crds").returncode == 0)


def test_a_ready_aggregator_serves_the_discovery_of_every_service(services: Services) -> None:
    services.stop("aggregator")
    services.stop("extensions")
    services.start("aggregator")
    services.start("extensions")
    services.wait_ready("aggregator")
    found = services.kubectl("get", "--raw", "/apis/apiextensions.k8s.io/v1")
    assert "customresourcedefinitions" in found
    context = ssl._create_unverified_context()
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    headers = {"authorization": "Bearer admin-token", "accept": accept}
    with urllib.request.urlopen(
        urllib.request.Request(f"{services.url}/apis", headers=headers), context=context, timeout=30
    ) as answer:
        groups = json.load(answer)["items"]
    stale = [
        group["metadata"]["name"]
        for group in groups
        for version in group["versions"]
        if version["freshness"] != "Current"
    ]
    assert not stale
    services.wait_ready("extensions")


def test_an_aggregator_becomes_ready_without_a_service_after_a_timeout(services: Services) -> None:
    services.stop("aggregator")
    services.stop("extensions", signal.SIGKILL)
    try:
        services.start("aggregator")
        services.wait_ready("aggregator")
        services.kubectl("get", "--raw", "/api/v1/namespaces/default")
    finally:
        services.start("extensions")
        services.wait_ready("extensions")
    until(lambda: services.kubectl.run("get", "crds").returncode == 0)


def asked(services: Services, token: str, method: str, path: str, body: bytes | None = None) -> tuple[int, str | None]:
    """Return the status of the response and its Retry-After header."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(services.url + path, method=method, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
            return answer.status, answer.headers["retry-after"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["retry-after"]


def test_requests_that_reached_no_service_are_retriable(services: Services) -> None:
    """client-go retries any method after a response with Retry-After; a 401 would make clients discard their
    credentials.
    """
    services.stop("core", signal.SIGKILL)
    try:
        assert asked(services, "admin-token", "PUT", "/api/v1/namespaces/default", b"{}") == (503, "1")
    finally:
        services.start("core")
        services.wait_ready("core")
    services.stop("auth", signal.SIGKILL)
    try:
        assert asked(services, "carol-token", "GET", "/api/v1/namespaces/default") == (503, "1")
        assert asked(
            services, "admin-token", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", b"{}"
        ) == (503, "1")
    finally:
        services.start("auth", f"--token-auth-file={TOKENS}")
        services.wait_ready("auth")
    until(lambda: asked(services, "admin-token", "GET", "/api/v1/namespaces/default") == (200, None))


def test_a_liveness_check_does_not_depend_on_another_service(services: Services) -> None:
    services.stop("auth", signal.SIGKILL)
    context = ssl._create_unverified_context()
    try:
        for name in ("aggregator", "core", "extensions"):
            with urllib.request.urlopen(
                f"https://127.0.0.1:{services.ports[name]}/livez", context=context, timeout=20
            ) as answer:
                assert answer.read() == b"ok"
    finally:
        services.start("auth", f"--token-auth-file={TOKENS}")
        services.wait_ready("auth")
