"""The chart on nodes: installed, tested, upgraded under load, its certificates renewed, removed and installed again.

`make e2e-stock` runs it in the cluster of `make cluster`: a Tetrapod whose workload is another Tetrapod. `make
e2e-kind` runs it in a cluster of kind.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.hosted.hosts import Host, kind_cluster, two_nodes
from e2e.test_kubectl import rows
from support.compose import ETCD, IMAGE, LIBRARY, REDIS, build_images, image_values
from support.helm import CHART, helm, settings
from support.https_client import HttpsClient
from support.kubectl import Kubectl, create_widget
from support.library import LIBRARY_EXAMPLE, register_library
from support.server import free_port, wait_ready
from support.waiting import until

pytestmark = pytest.mark.timeout(1800)

NODE_PORT: Final = 30443
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class Hosted:
    """Tetrapod in a cluster.

    Attributes:
        host: kubectl of the hosting cluster, in the namespace of the release.
        kubectl: kubectl of the hosted Tetrapod, which connects to the port of a node.
        address: the address of that node.
        values: the flags of `helm` with the values of the release.
    """

    cluster: Host
    host: Kubectl
    kubectl: Kubectl
    address: str
    values: tuple[str, ...]

    def upgrade(self, command: str, *arguments: str) -> None:
        """Run a command of helm that changes the release, and wait until all pods are ready."""
        helm(command, "rel", *arguments, "--wait", "--timeout", "10m", kubectl=self.host, timeout=700)

    def serial(self) -> int:
        """Return the serial number of the certificate that the aggregator presents."""
        from cryptography.x509 import load_pem_x509_certificate

        pem = ssl.get_server_certificate((self.address, NODE_PORT), timeout=10)
        return load_pem_x509_certificate(pem.encode()).serial_number


@pytest.fixture(
    scope="module",
    params=[pytest.param("two nodes", marks=pytest.mark.stock), pytest.param("kind", marks=pytest.mark.kind)],
)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    build_images()
    start = two_nodes if request.param == "two nodes" else kind_cluster
    with start(tmp_path_factory.mktemp("host"), (IMAGE, LIBRARY, ETCD, REDIS)) as host:
        yield host


@pytest.fixture(scope="module")
def hosted(cluster: Host) -> Hosted:
    cluster.kubectl("create", "namespace", "hosted")
    host = replace(cluster.kubectl, namespace="hosted")
    addresses = host.json("get", "nodes")["items"][0]["status"]["addresses"]
    address = next(one["address"] for one in addresses if one["type"] == "InternalIP")
    values = settings(
        image=image_values(IMAGE),
        etcd__image=image_values(ETCD),
        etcd__replicaCount=3,
        redis__image=image_values(REDIS),
        defaults__resources__requests__cpu="25m",  # on two cores, the pods of an upgrade fit beside the old ones
        aggregator__hosts=[address],
        aggregator__service__type="NodePort",
        aggregator__service__nodePort=NODE_PORT,
        certificates__server=f"https://{address}:{NODE_PORT}",
    )
    kubeconfig = host.home / "tetrapod.kubeconfig"
    hosted = Hosted(cluster, host, Kubectl(host.home, kubeconfig), address, tuple(values))
    hosted.upgrade("install", str(CHART), *values)
    write_kubeconfig(hosted, kubeconfig)
    return hosted


def write_kubeconfig(hosted: Hosted, path: Path) -> None:
    """Write the administrator's kubeconfig as the notes of the chart say."""
    data = hosted.host.json("get", "secret", "rel-tetrapod-admin")["data"]["kubeconfig"]
    path.write_bytes(base64.b64decode(data))


@contextmanager
def load(hosted: Hosted) -> Iterator[list[str]]:
    """Send reads and writes all the time, each over a connection of its own, and yield the list of those that fail."""
    client = HttpsClient(hosted.kubectl.kubeconfig or Path())
    failed: list[str] = []
    ended = threading.Event()

    def send(number: int) -> None:
        made, path = {"metadata": {"name": f"load-{number}"}}, f"{CONFIG_MAPS}/load-{number}"
        while not ended.is_set():
            requests: tuple[tuple[str, str, Any], ...] = (
                ("POST", CONFIG_MAPS, made),
                ("GET", path, None),
                ("DELETE", path, None),
            )
            for method, where, body in requests:
                try:
                    reply = client.call(method, where, body)
                except OSError as error:
                    failed.append(f"{method} {where}: {error}")
                else:
                    if reply.status not in (200, 201):
                        failed.append(f"{method} {where}: {reply.status} {reply.message}")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield failed
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_helm_test_passes(hosted: Hosted) -> None:
    assert "Succeeded" in helm("test", "rel", kubectl=hosted.host, timeout=300)


def test_kubectl_works_through_the_port_of_a_node(hosted: Hosted, manifests: Path) -> None:
    kubectl = replace(hosted.kubectl, namespace="tour")
    hosted.kubectl("create", "namespace", "tour")
    kubectl.exists("serviceaccount/default")
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert rows(kubectl("get", "deployments"))[1][:2] == ["web", "0/2"]
    create_widget(kubectl, manifests / "crd.yaml")
    kubectl("delete", "namespace", "tour", "--timeout=60s")


def test_kubectl_works_through_a_forwarded_port(hosted: Hosted) -> None:
    port, log = free_port(), hosted.host.home / "port-forward.log"
    forward = [*hosted.host.command(), "port-forward", "service/rel-tetrapod", f"{port}:443"]
    with log.open("ab") as out:
        process = subprocess.Popen(forward, env=hosted.host.env(), stdout=out, stderr=out)
    try:
        wait_ready(f"https://localhost:{port}", process, log)
        assert "kube-system" in hosted.kubectl("get", "namespaces", f"--server=https://localhost:{port}")
    finally:
        process.terminate()
        process.wait()


def test_members_of_etcd_have_volumes_of_their_own(hosted: Hosted) -> None:
    claims = hosted.host.json("get", "persistentvolumeclaims")["items"]
    assert {claim["status"]["phase"] for claim in claims} == {"Bound"}
    assert len({claim["spec"]["volumeName"] for claim in claims}) == 3


def test_only_the_aggregator_is_reachable_from_other_pods(hosted: Hosted) -> None:
    if not hosted.cluster.enforces_policies:
        pytest.skip("not applicable: the network of this cluster enforces no NetworkPolicies")
    script = "import urllib.request as u; u.urlopen('{}', timeout=5)"
    outsider = replace(hosted.host, namespace="default")
    dropped_or_rejected = "timed out|Connection refused"
    for service, expected in (
        ("rel-tetrapod:443", "CERTIFICATE_VERIFY_FAILED"),
        ("rel-tetrapod-auth:6443", dropped_or_rejected),
    ):
        command = ["python", "-c", script.format(f"https://{service.replace(':', '.hosted.svc:')}/readyz")]
        outsider(
            "run",
            "outsider",
            f"--image={IMAGE}",
            "--image-pull-policy=Never",
            "--restart=Never",
            "--command",
            "--",
            *command,
        )
        outsider("wait", "pod/outsider", "--for=jsonpath={.status.phase}=Failed", "--timeout=60s", timeout=90)
        assert re.search(expected, outsider("logs", "outsider"))
        outsider("delete", "pod", "outsider", timeout=90)


def test_an_external_api_server_is_aggregated(hosted: Hosted) -> None:
    credentials = hosted.host.home / "credentials"
    register_library(hosted.kubectl, "credentials", str(credentials))
    hosted.host("create", "secret", "generic", "library", f"--from-file={credentials}")
    manifest = (LIBRARY_EXAMPLE / "hosted.yaml").read_text()
    for documented, ours in (
        ("tetrapod-library:latest", LIBRARY),
        ("api-tetrapod.tetrapod.svc", "rel-tetrapod.hosted.svc"),
    ):
        assert documented in manifest
        manifest = manifest.replace(documented, ours)
    hosted.host("apply", "-f", "-", stdin=manifest)
    hosted.host("rollout", "status", "deployment/library", "--timeout=120s", timeout=150)
    ca = hosted.host.home / "library-ca.crt"
    ca.write_text(hosted.host("exec", "deployment/library", "--", "cat", "/data/pki/ca.crt"))
    register_library(hosted.kubectl, "apiservice", str(ca))
    until(
        lambda: "books" in hosted.kubectl("api-resources", "--api-group=library.example.com", "-o", "name"),
        timeout=60,
        description="discovery",
    )
    hosted.kubectl("apply", "-f", str(LIBRARY_EXAMPLE / "manifests/40-books.yaml"))
    assert "moby-dick" in hosted.kubectl("get", "books", "--namespace=library", "-o", "name")


def test_no_request_fails_during_an_upgrade_and_a_rollback(hosted: Hosted) -> None:
    hosted.kubectl("create", "configmap", "kept", "--from-literal=a=b", "--namespace=default")
    changed = settings(defaults__podAnnotations={"example.com/upgrade": "1"})
    with load(hosted) as failed:
        hosted.upgrade("upgrade", str(CHART), *hosted.values, *changed)
        hosted.upgrade("rollback", "1")
    assert failed == []
    assert hosted.kubectl("get", "configmap", "kept", "--namespace=default", "-o", "jsonpath={.data.a}") == "b"


def test_no_request_fails_while_certificates_are_renewed(hosted: Hosted) -> None:
    before = hosted.serial()
    job = json.loads(
        hosted.host("create", "job", "renew", "--from=cronjob/rel-tetrapod-certs", "--dry-run=client", "-o", "json")
    )
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["args"] = [
        "--renew-before=9000h" if argument.startswith("--renew-before=") else argument for argument in container["args"]
    ]
    with load(hosted) as failed:
        hosted.host("create", "-f", "-", stdin=json.dumps(job))
        hosted.host("wait", "job/renew", "--for=condition=Complete", "--timeout=120s", timeout=150)
        until(hosted.serial, lambda serial: serial != before, timeout=240, description="the new certificate")
    assert failed == []
    renewed = hosted.host.home / "renewed.kubeconfig"
    write_kubeconfig(hosted, renewed)
    assert renewed.read_bytes() != (hosted.kubectl.kubeconfig or Path()).read_bytes()
    assert "kube-system" in replace(hosted.kubectl, kubeconfig=renewed)("get", "namespaces")


def test_a_removed_release_leaves_what_the_next_one_continues_with(hosted: Hosted) -> None:
    def names(kind: str) -> set[str]:
        return {obj["metadata"]["name"] for obj in hosted.host.json("get", kind)["items"]}

    claims, secrets = names("persistentvolumeclaims"), names("secrets")
    helm("uninstall", "rel", "--wait", "--timeout", "5m", kubectl=hosted.host, timeout=400)
    until(lambda: {name for name in names("pods") if name.startswith("rel-")}, lambda found: not found)
    assert names("persistentvolumeclaims") == claims
    assert {name for name in secrets if name.startswith("rel-tetrapod-")} <= names("secrets") | {"rel-tetrapod-redis"}
    hosted.upgrade("install", str(CHART), *hosted.values)
    assert hosted.kubectl("get", "configmap", "kept", "--namespace=default", "-o", "jsonpath={.data.a}") == "b"


def test_the_documented_command_removes_the_rest(hosted: Hosted) -> None:
    helm("uninstall", "rel", "--wait", "--timeout", "5m", kubectl=hosted.host, timeout=400)
    hosted.host(
        "delete", "secret,persistentvolumeclaim", "-l", "app.kubernetes.io/instance=rel", "--timeout=120s", timeout=150
    )
    kinds = "all,secrets,configmaps,persistentvolumeclaims,serviceaccounts,roles,rolebindings,networkpolicies"

    def left() -> list[str]:
        objects = hosted.host.json("get", kinds)["items"]
        return [name for obj in objects if "rel-" in (name := f"{obj['kind']}/{obj['metadata']['name']}")]

    until(left, lambda names: not names, description="the end of all objects")
    until(
        lambda: hosted.host.json("get", "persistentvolumes")["items"],
        lambda volumes: not volumes,
        timeout=120,
        description="the end of the volumes",
    )
