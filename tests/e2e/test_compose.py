"""The four services, etcd and redis as containers: kubectl, restarts, hardening, an external API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.test_kubectl import rows
from support.compose import FOUR, IMAGE, LIBRARY, Compose, build_images, docker
from support.kubectl import Kubectl, create_widget
from support.library import LIBRARY_EXAMPLE, register_library
from support.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    build_images()
    compose = Compose.new(tmp_path_factory.mktemp("compose"))
    compose.credentials.mkdir()
    try:
        compose("up", "--detach", "--no-build", "etcd", "redis", *FOUR)
        compose.wait_healthy(*FOUR)
        yield compose
    finally:
        compose.down()


@pytest.fixture(scope="module")
def admin(compose: Compose) -> Kubectl:
    kubeconfig = compose.copy("certs", "/certs/admin/kubeconfig", compose.directory / "kubeconfig")
    return Kubectl(compose.directory, kubeconfig)


@pytest.fixture(scope="module")
def kubectl(admin: Kubectl) -> Kubectl:
    admin("create", "namespace", "tour")
    admin.exists("--namespace=tour", "serviceaccount/default")
    return replace(admin, namespace="tour")


@pytest.mark.usefixtures("compose")
def test_images_are_small() -> None:
    for image in (IMAGE, LIBRARY):
        assert int(docker("image", "inspect", "--format={{.Size}}", image)) < 200 * 1024 * 1024


@pytest.mark.parametrize("service", [*FOUR, "etcd", "redis"])
def test_containers_run_with_least_privileges(compose: Compose, service: str) -> None:
    found = compose.inspect(service)
    assert found["Config"]["User"] == "65532:65532"
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"]
    assert found["State"]["Health"]["Status"] == "healthy"
    if service in FOUR:
        container = compose.container(service)
        assert docker("exec", container, "id", "-u").strip() == "65532"
        script = "touch /opt/x 2>/dev/null || touch /certs/*/x 2>/dev/null && echo written; true"
        assert docker("exec", container, "sh", "-c", script) == ""


def test_private_keys_are_mounted_only_where_needed(compose: Compose) -> None:
    files = {
        service: docker("exec", compose.container(service), "find", "/certs", "-name", "*.key").split()
        for service in FOUR
    }
    names = {service: {Path(file).name for file in found} for service, found in files.items()}
    own = {"tls.key", "client.key", "etcd-client.key"}
    assert names == {
        "aggregator": own | {"front-proxy-client.key"},
        "core": own,
        "extensions": own,
        "auth": own | {"sa.key"},
    }


def test_kubectl_commands_work(kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert rows(kubectl("get", "deployments"))[1][:2] == ["web", "0/2"]
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("scale", "deploy/web", "--replicas=4")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(manifests / "web.yaml"))
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 2
    create_widget(kubectl, manifests / "crd.yaml")
    assert rows(kubectl("get", "widgets"))[1][:2] == ["w", "3"]
    until(lambda: kubectl.run("explain", "widget.spec.size").returncode == 0, description="the schema")
    assert "Number of desired pods" in kubectl("explain", "deployment.spec.replicas")
    assert "v1.apps" in kubectl("get", "apiservices", "-o", "name")
    assert "True" in kubectl("get", "apiservice", "v1.apps")


def token_user(compose: Compose, kubectl: Kubectl, account: str) -> tuple[Kubectl, tuple[str, ...]]:
    """Return a kubectl without a kubeconfig, and the flags that authenticate it with a new token of a service
    account.
    """
    token = kubectl("create", "token", account).strip()
    assert kubectl.kubeconfig is not None
    cluster = json.loads(kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]
    ca = compose.directory / "ca.crt"
    ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    flags = (f"--server={cluster['server']}", f"--certificate-authority={ca}", f"--token={token}")
    return Kubectl(kubectl.home, None, kubectl.namespace), flags


def test_tokens_and_roles_work_across_the_services(kubectl: Kubectl, compose: Compose) -> None:
    kubectl("create", "serviceaccount", "robot")
    robot, flags = token_user(compose, kubectl, "robot")
    assert "system:serviceaccount:tour:robot" in robot("auth", "whoami", *flags)
    assert "forbidden" in robot.fails("get", "secrets", *flags)
    kubectl("create", "rolebinding", "robot", "--clusterrole=admin", "--serviceaccount=tour:robot")
    until(lambda: robot.run("get", "secrets", *flags).returncode == 0, description="the permission")


@pytest.mark.parametrize("service", FOUR)
def test_a_restart_loses_no_data(compose: Compose, kubectl: Kubectl, service: str) -> None:
    kubectl("create", "configmap", f"before-{service}", f"--from-literal=who={service}")
    before = kubectl("get", "deploy,cm,secret,widgets", "-o", "name")
    compose("restart", service)
    compose.wait_healthy(service)
    compose.wait_ready()
    until(lambda: kubectl.run("get", "widgets").returncode == 0, description="custom resources")
    assert kubectl("get", "deploy,cm,secret,widgets", "-o", "name") == before
    kubectl("create", "configmap", f"after-{service}")
    assert kubectl("get", "cm", f"before-{service}", "-o", "jsonpath={.data.who}") == service


def test_the_services_work_without_redis(compose: Compose, kubectl: Kubectl) -> None:
    compose("stop", "redis")
    assert compose.inspect("redis")["State"]["Running"] is False
    robot, flags = token_user(compose, kubectl, "default")
    assert "system:serviceaccount:tour:default" in robot("auth", "whoami", *flags)
    assert "forbidden" in robot.fails("get", "secrets", *flags)
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    compose("start", "redis")
    assert "system:serviceaccount:tour:default" in robot("auth", "whoami", *flags)


def test_the_data_survives_a_restart_of_etcd(compose: Compose, kubectl: Kubectl) -> None:
    before = kubectl("get", "cm", "-o", "name")
    compose("restart", "etcd")
    compose.wait_healthy("etcd")
    until(lambda: kubectl.run("create", "configmap", "after-etcd").returncode == 0, timeout=60, description="writing")
    assert set(before.split()) < set(kubectl("get", "cm", "-o", "name").split())


def test_an_external_api_server_is_aggregated(compose: Compose, kubectl: Kubectl) -> None:
    register_library(kubectl, "credentials", str(compose.credentials))
    compose("up", "--detach", "--no-build", "--no-deps", "library")
    compose.wait_healthy("library")
    ca = compose.copy("library", "/data/pki/ca.crt", compose.directory / "library-ca.crt")
    register_library(kubectl, "apiservice", str(ca))
    until(
        lambda: "books" in kubectl("api-resources", "--api-group=library.example.com", "-o", "name"),
        description="discovery",
    )
    admin = replace(kubectl, namespace="library")
    admin("apply", "-f", str(LIBRARY_EXAMPLE / "manifests/40-books.yaml"))
    assert rows(admin("get", "books"))[1][:4] == ["moby-dick", "Moby-Dick", "Herman Melville", "2"]
    until(lambda: admin.run("explain", "book.spec.title").returncode == 0, description="the schema")
    jane = ("--as=jane", "--as-group=system:authenticated")
    rejected = admin.fails("get", "books", *jane)
    assert 'User "jane" cannot list resource "books" in API group "library.example.com"' in rejected
    admin("create", "rolebinding", "jane", "--clusterrole=view", "--user=jane")
    until(lambda: admin.run("get", "books", *jane).returncode == 0, timeout=40, description="the permission")
    assert "forbidden" in admin.fails("delete", "book", "moby-dick", *jane)
    wrong = admin.fails("patch", "book", "moby-dick", "--type=merge", "-p", '{"spec": {"copies": -1}}')
    assert "should be greater than or equal to 0" in wrong
    admin("patch", "book", "moby-dick", "--subresource=status", "--type=merge", "-p", '{"status": {"lent": 1}}')
    assert rows(admin("get", "books", "-o", "wide"))[1][4] == "1"


def test_a_stopped_external_api_server_affects_no_other_group(compose: Compose, kubectl: Kubectl) -> None:
    compose("stop", "library")
    until(
        lambda: "False" in kubectl("get", "apiservice", "v1.library.example.com"),
        timeout=60,
        description="the condition",
    )
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    assert kubectl.run("get", "books").returncode != 0
    compose("start", "library")
    until(
        lambda: kubectl.run("get", "books", "--namespace=library").returncode == 0, timeout=60, description="its return"
    )
    assert "moby-dick" in kubectl("get", "books", "--namespace=library", "-o", "name")


def test_all_four_run_as_replicas(compose: Compose, kubectl: Kubectl) -> None:
    compose.variables["TETRAPOD_TO_PORT"] = f"-{compose.port + 1}"  # a port for each aggregator
    compose("up", "--detach", "--no-build", *(flag for service in FOUR for flag in ("--scale", f"{service}=2")), *FOUR)
    until(lambda: all(compose.healthy(service) == 2 for service in FOUR), timeout=120, description="two of each")

    def front_doors() -> list[str]:
        subsets = kubectl.json("--namespace=default", "get", "endpoints", "kubernetes").get("subsets") or [{}]
        return [address["ip"] for address in subsets[0].get("addresses") or []]

    until(
        lambda: kubectl.run("get", "namespaces").returncode == 0 and len(front_doors()) == 2,
        timeout=60,
        description="two front doors",
    )
    ready = 'tetrapod_service_replicas{{ready="true",service="{}"}} 2'.format
    behind = ("core", "extensions", "auth")
    until(
        lambda: all(ready(service) in kubectl("get", "--raw", "/metrics") for service in behind),
        timeout=60,
        description="both of each",
    )
    kubectl("create", "configmap", "replicated")
    assert kubectl("get", "widgets")
