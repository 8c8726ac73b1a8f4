"""Two API servers over one etcd, of which only one serves a group-version."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import server as servers
from support.etcd import running_etcd
from support.failing_starts import failed_start
from support.server import Server, start
from support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

GROUP = "/apis/resource.k8s.io/v1beta1"
CLASSES = f"{GROUP}/deviceclasses"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PROGRAM = """
import runpy, socket
socket.gethostname = lambda: {hostname!r}
runpy.run_module("tetrapod.cli.main", run_name="__main__", alter_sys=True)
"""


def request(
    server: Server, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    with closing(server.connect()) as connection:
        content = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, {**content, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()


def versions(server: Server, accept: str = AGGREGATED) -> list[str]:
    """Return the versions of resource.k8s.io in the aggregated discovery document."""
    status, body = request(server, "GET", "/apis", headers={"Accept": accept})
    assert status == 200
    [group] = [item for item in json.loads(body)["items"] if item["metadata"]["name"] == "resource.k8s.io"]
    return [version["version"] for version in group["versions"]]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Server]]:
    """Yield a server that serves resource.k8s.io/v1beta1 and one that does not. They trust the same CAs."""
    started: list[Server] = []
    with running_etcd(tmp_path / "etcd") as etcd:
        try:
            for name, flags in (("newer", ["--runtime-config=resource.k8s.io/v1beta1=true"]), ("older", [])):
                program = PROGRAM.format(hostname=name)
                monkeypatch.setattr(servers, "command", lambda *args, p=program: [sys.executable, "-c", p, *args])
                data = tmp_path / name
                if started:
                    shutil.copytree(started[0].data_dir / "pki", data / "pki")
                    flags = [*flags, f"--peer-ca-file={started[0].ca}"]
                started.append(start(data, f"--etcd-servers={etcd.url}", *flags))
            yield started[0], started[1]
        finally:
            for server in started:
                if server.process.poll() is None:
                    server.stop()


def test_requests_for_a_version_that_only_a_peer_serves_are_sent_to_the_peer(pair: tuple[Server, Server]) -> None:
    newer, older = pair
    until(lambda: request(older, "GET", CLASSES)[0] == 200, timeout=60)

    device_class = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "a"}}
    status, body = request(older, "POST", CLASSES, device_class)
    assert status == 201, body
    stored = json.loads(request(newer, "GET", f"{CLASSES}/a")[1])
    assert stored["metadata"]["uid"] == json.loads(body)["metadata"]["uid"]
    proxied = {"x-kubernetes-peer-proxied": "true"}
    assert request(older, "GET", CLASSES, headers=proxied)[0] == 404  # a request is proxied once
    assert request(older, "GET", f"{GROUP}/unknown")[0] == 404

    assert "v1beta1" in versions(older)
    assert "v1beta1" not in versions(older, f"{AGGREGATED};profile=nopeer")
    metrics = request(older, "GET", "/metrics")[1].decode()
    [row] = [line for line in metrics.splitlines() if line.startswith('apiserver_rerouted_request_total{code="201"')]
    assert 'group="resource.k8s.io"' in row
    assert 'resource="deviceclasses"' in row
    assert row.endswith(" 1")
    assert "aggregator_discovery_nopeer_requests_total 1" in metrics

    newer.process.kill()
    newer.process.wait()
    status, body = request(older, "GET", CLASSES)
    assert status == 503
    assert body.startswith(b"error trying to reach service: ")


def test_flags_of_peers_need_the_feature_gate(tmp_path: Path) -> None:
    flags = ["--peer-advertise-ip=10.0.0.1", "--peer-advertise-port=6443"]
    failed = failed_start(tmp_path, *flags, "--feature-gates=UnknownVersionInteroperabilityProxy=false")
    assert failed.code == 1
    assert (
        "[--peer-advertise-ip requires UnknownVersionInteroperabilityProxy feature to be turned on, "
        "--peer-advertise-port requires UnknownVersionInteroperabilityProxy feature to be turned on]"
    ) in failed.stderr
