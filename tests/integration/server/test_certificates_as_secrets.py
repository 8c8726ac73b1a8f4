"""`tetrapod certs --secrets`: the work of the chart's job in the cluster that hosts the four services."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.kubectl import Kubectl
from support.server import Server, command, environment, running

pytestmark = pytest.mark.long

ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "certs"},
    "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]}],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("host")) as server:
        yield server


@dataclass
class Job:
    """Return the environment of the job's pod: a service account's directory, and the cluster's address."""

    server: Server
    kubectl: Kubectl
    directory: Path

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        url = urlsplit(self.server.url)
        where = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}
        out = self.directory / f"out-{len(os.listdir(self.directory))}"
        argv = command(
            "certs", f"--out={out}", "--secrets=rel", f"--service-account={self.directory / 'account'}", *flags
        )
        return subprocess.run(
            argv, env={**environment(), **where}, capture_output=True, text=True, timeout=60, check=False
        )

    def secrets(self) -> dict[str, dict[str, bytes]]:
        found = self.kubectl.json("get", "secrets")["items"]
        return {item["metadata"]["name"]: decoded(item) for item in found}


def decoded(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


@pytest.fixture
def job(host: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Job:
    namespace = f"ns-{abs(hash(request.node.name)) % 10**6}"
    admin = Kubectl(tmp_path, host.kubeconfig)
    admin("create", "namespace", namespace)
    kubectl = Kubectl(tmp_path, host.kubeconfig, namespace)
    kubectl("create", "serviceaccount", "certs")
    kubectl("create", "-f", "-", stdin=json.dumps(ROLE))
    kubectl("create", "rolebinding", "certs", "--role=certs", f"--serviceaccount={namespace}:certs")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text(kubectl("create", "token", "certs"))
    (account / "namespace").write_text(namespace)
    (account / "ca.crt").write_bytes(host.ca.read_bytes())
    return Job(host, kubectl, tmp_path)


def test_a_second_run_leaves_the_secrets_as_they_are(job: Job) -> None:
    done = job.run("--secret-label=app.kubernetes.io/name=tetrapod")
    assert done.returncode == 0, done.stderr
    first = job.secrets()
    assert {*first} == {
        f"rel-{name}" for name in ("ca", "admin", "monitoring", "aggregator", "core", "extensions", "auth", "etcd")
    }
    assert [name for name, data in first.items() if "sa.key" in data] == ["rel-auth"]
    assert job.kubectl("get", "secrets", "-l", "app.kubernetes.io/name=tetrapod", "-o", "name").count("\n") == 8
    again = job.run()
    assert (again.returncode, again.stdout) == (0, "everything is good as it is\n"), again.stderr
    assert job.secrets() == first


def test_rotation_renews_leaves_and_keeps_authorities_and_the_signing_key(job: Job) -> None:
    assert job.run().returncode == 0
    before = job.secrets()
    assert job.run("--renew-before=8784h").returncode == 0
    after = job.secrets()
    for name in ("aggregator", "core", "extensions", "auth", "etcd"):
        assert after[f"rel-{name}"]["tls.crt"] != before[f"rel-{name}"]["tls.crt"]
    for name in ("ca.crt", "ca.key", "client-ca.key", "front-proxy-ca.key", "etcd-ca.key"):
        assert after["rel-ca"][name] == before["rel-ca"][name]
    assert after["rel-auth"]["sa.key"] == before["rel-auth"]["sa.key"]


def test_a_secret_that_is_lost_is_made_from_the_same_authorities(job: Job) -> None:
    assert job.run().returncode == 0
    before = job.secrets()
    job.kubectl("delete", "secret", "rel-core")
    assert job.run().stdout == "written: rel-core\n"
    after = job.secrets()
    assert after["rel-core"]["ca.crt"] == before["rel-core"]["ca.crt"]
    assert {name: after[name] for name in after if name != "rel-core"} == {
        name: before[name] for name in before if name != "rel-core"
    }


def test_rejections_by_the_cluster_are_reported_in_one_line(job: Job) -> None:
    job.kubectl("delete", "rolebinding", "certs")
    done = job.run()
    assert done.returncode == 1
    assert 'cannot get resource \\"secrets\\"' in done.stderr and "Traceback" not in done.stderr
