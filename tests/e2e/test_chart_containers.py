"""Tests of the chart's pods as containers.

Our server stores the objects, Docker runs the pods, and kubectl connects through the aggregator.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from e2e.test_kubectl import rows
from support.compose import ETCD, IMAGE, REDIS, build_images, docker, image_values
from support.helm import CHART, helm, settings
from support.hooks import running_jobs_and_pods, write_account_directory
from support.kubectl import Kubectl, create_widget
from support.pods import Pods
from support.server import Server, free_port, running
from support.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

Object = dict[str, Any]
HOST = "rel-tetrapod.hosted.svc"
REPLICAS = ("aggregator-0", "core-0", "core-1", "extensions-0", "auth-0")


VALUES = settings(
    image=image_values(IMAGE),
    etcd__image=image_values(ETCD),
    redis__image=image_values(REDIS),
    aggregator__service__port=6443,  # without kube-proxy nothing maps this port
    defaults__shutdownDelayDuration="1s",
)


@dataclass
class Release:
    """A release of the chart: `host` stores the objects, `pods` runs the pods, `kubectl` connects to the server in
    them.
    """

    host: Kubectl
    pods: Pods
    directory: Path
    ca: bytes
    where: tuple[str, ...]

    def run(self, name: str, spec: Object) -> int:
        """Run the pod of a Job or of a Helm test to completion and return its exit code."""
        if spec.get("automountServiceAccountToken"):
            write_account_directory(self.host, spec["serviceAccountName"], self.directory / name / "account", self.ca)
            return self.pods.run_to_end(name, spec, "--network", "host", *self.where)
        return self.pods.run_to_end(name, spec, *self.pods.networks("rel-tetrapod"))

    def template(self, kind: str, name: str) -> Object:
        found: Object = self.host.json("get", kind, f"rel-tetrapod-{name}")["spec"]["template"]
        return found

    def kubectl(self, token: str = "") -> Kubectl:
        """Write a kubeconfig of the administrator from the job's Secret, or of a token.

        Docker has addresses instead of a cluster's names.
        """
        data = self.host.json("get", "secret", "rel-tetrapod-admin")["data"]["kubeconfig"]
        config = json.loads(base64.b64decode(data))
        cluster = config["clusters"][0]["cluster"]
        assert cluster["server"] == f"https://{HOST}:6443"
        cluster |= {"server": f"https://{self.pods.address('aggregator-0')}:6443", "tls-server-name": HOST}
        if token:
            config["users"][0]["user"] = {"token": token}
        path = self.directory / f"kubeconfig-{len(token)}"
        path.write_text(json.dumps(config))
        return Kubectl(self.directory, path)


@pytest.fixture(scope="module")
def hosting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("host"), "--service-cluster-ip-range=10.0.0.0/16") as server:
        yield server


@pytest.fixture(scope="module")
def release(hosting: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    build_images()
    directory = tmp_path_factory.mktemp("release")
    admin = Kubectl(directory, hosting.kubeconfig)
    admin("create", "namespace", "hosted")
    admin.exists("--namespace=hosted", "serviceaccount/default")
    host = replace(admin, namespace="hosted")
    pods = Pods(f"tetrapod-chart-{free_port()}", directory, host)
    url = urlsplit(hosting.url)
    where = ("--env", f"KUBERNETES_SERVICE_HOST={url.hostname}", "--env", f"KUBERNETES_SERVICE_PORT={url.port}")
    found = Release(host, pods, directory, hosting.ca.read_bytes(), where)
    try:
        with running_jobs_and_pods(host, found.run) as ran:
            helm("install", "rel", str(CHART), *VALUES, kubectl=host)
        assert ran == ["rel-tetrapod-certs-init"]
        pods.create_networks()
        for name in REPLICAS:
            pods.run(name, found.template("deployment", name.partition("-")[0]))
        pods.run("redis-0", found.template("deployment", "redis"))
        etcd = found.template("statefulset", "etcd")
        etcd["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = "rel-tetrapod-etcd-0"
        pods.run("rel-tetrapod-etcd-0", etcd)
        pods.wait_ready("rel-tetrapod-etcd-0", "redis-0", *REPLICAS)
        yield found
    finally:
        pods.remove()


@pytest.fixture(scope="module")
def kubectl(release: Release) -> Kubectl:
    admin = release.kubectl()
    admin("create", "namespace", "tour")
    admin.exists("--namespace=tour", "serviceaccount/default")
    return replace(admin, namespace="tour")


def test_kubectl_commands_work_through_the_aggregator(release: Release, kubectl: Kubectl, manifests: Path) -> None:
    kubectl("apply", "-f", str(manifests / "web.yaml"))
    assert rows(kubectl("get", "deployments"))[1][:2] == ["web", "0/2"]
    create_widget(kubectl, manifests / "crd.yaml")
    assert rows(kubectl("get", "widgets"))[1][:2] == ["w", "3"]
    kubectl("create", "serviceaccount", "robot")
    robot = release.kubectl(kubectl("create", "token", "robot").strip())
    assert "system:serviceaccount:tour:robot" in robot("auth", "whoami")
    assert "forbidden" in robot.fails("get", "secrets", "--namespace=tour")
    kubectl("create", "rolebinding", "robot", "--clusterrole=admin", "--serviceaccount=tour:robot")
    until(lambda: robot.run("get", "secrets", "--namespace=tour").returncode == 0, description="the permission")
    kubectl("delete", "namespace", "tour", "--timeout=50s")


def test_helm_test_passes(release: Release) -> None:
    with running_jobs_and_pods(release.host, release.run) as ran:
        assert "Phase:          Succeeded" in helm("test", "rel", kubectl=release.host)
    assert ran == ["rel-tetrapod-test"]


def test_private_keys_are_mounted_only_where_needed(release: Release) -> None:
    own = {"tls.key", "client.key", "etcd-client.key"}
    for name in REPLICAS:
        files = docker("exec", release.pods.container(name), "find", "/certs", "-name", "*.key").split()
        more = {"aggregator-0": {"front-proxy-client.key"}, "auth-0": {"sa.key"}}.get(name, set())
        assert {Path(file).name for file in files} == own | more
        assert docker("exec", release.pods.container(name), "id", "-u").strip() == "65532"


def test_replicas_share_redis_which_requires_a_password(release: Release) -> None:
    password = base64.b64decode(release.host.json("get", "secret", "rel-tetrapod-redis")["data"]["password"]).decode()
    container = release.pods.container("redis-0")
    assert "NOAUTH" in docker("exec", container, "redis-cli", "dbsize", errors=True)
    someone = release.kubectl(release.kubectl()("create", "token", "default", "--namespace=default").strip())

    def remembered() -> bool:  # the decision is cached for ten seconds by the replica that made it
        someone("auth", "whoami")
        return int(docker("exec", container, "redis-cli", "--no-auth-warning", "-a", password, "dbsize")) > 0

    until(remembered, timeout=60, description="a token that is remembered in redis")


def test_etcd_peer_port_accepts_only_members(release: Release) -> None:
    """etcd's peer port requires another certificate than a service has, although the same CA issues both."""
    script = (
        "import ssl, urllib.request as u; c = ssl.create_default_context(cafile='/certs/core/etcd-ca.crt');"
        "c.load_cert_chain('/certs/core/etcd-client.crt', '/certs/core/etcd-client.key');"
        "print(u.urlopen('https://rel-tetrapod-etcd-0.rel-tetrapod-etcd-peers.hosted.svc:2380/version', "
        "context=c).status)"
    )
    output = docker("exec", release.pods.container("core-0"), "sh", "-c", f'python -c "{script}" || true', errors=True)
    assert "ALERT_BAD_CERTIFICATE" in output


def test_renewed_certificates_are_loaded_without_a_restart(release: Release) -> None:
    def serial() -> str:
        return ssl.get_server_certificate((release.pods.address("core-0"), 6443))

    before = serial()
    spec = release.host.json("get", "cronjob", "rel-tetrapod-certs")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert release.run("rotation", spec) == 0
    assert serial() == before  # all certificates are valid for long
    args = spec["containers"][0]["args"]
    spec["containers"][0]["args"] = [arg.replace("--renew-before=720h", "--renew-before=8784h") for arg in args]
    assert release.run("rotation", spec) == 0
    for name in ("rel-tetrapod-etcd-0", *REPLICAS):
        release.pods.write_volumes(name)
    deadline = time.monotonic() + 60
    while serial() == before:
        assert time.monotonic() < deadline, release.pods.logs("core-0")
        time.sleep(0.2)  # the processes send no notification
    admin = release.kubectl()
    until(
        lambda: admin.run("create", "configmap", "after", "--namespace=default").returncode == 0,
        description="writing with renewed certificates",
    )
    assert "v1.apps" in admin("get", "apiservices", "-o", "name")
