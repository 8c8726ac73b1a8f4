"""--max-connection-bytes-per-sec: kubectl's exec and port-forward are throttled in both directions."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.http_server import Answered, http_server
from support.https_client import MERGE, HttpsClient
from support.kubectl import Kubectl
from support.kubelet import fake_kubelet
from support.server import free_port, running

RATE = 40_000
SIZE = 80_000
SECONDS = SIZE / RATE
PODS = "/api/v1/namespaces/default/pods"
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    directory = tmp_path_factory.mktemp("rate")
    flag = f"--max-connection-bytes-per-sec={RATE}"
    with fake_kubelet(directory) as kubelet, running(directory / "data", flag) as server:
        client = HttpsClient(server.kubeconfig)
        address = [{"type": "InternalIP", "address": "127.0.0.1"}]
        for name, features in (("translated", []), ("direct", ["ExtendWebSocketsToKubelet"])):
            status = {"addresses": address, "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}
            node = {"metadata": {"name": name}, "status": {**status, "declaredFeatures": features}}
            assert client.call("POST", "/api/v1/nodes", node).status == 201
            spec: dict[str, object] = {"nodeName": name, "containers": [{"name": "c", "image": "i", "stdin": True}]}
            spec["automountServiceAccountToken"] = False
            pod = {"metadata": {"name": name}, "spec": spec}
            client.until(lambda reply: reply.status == 201, "POST", PODS, pod)
            running_phase = {"status": {"phase": "Running"}}
            assert client.call("PATCH", f"{PODS}/{name}/status", running_phase, MERGE).status == 200
        yield Kubectl(tmp_path_factory.mktemp("home"), server.kubeconfig, "default")


@pytest.fixture(params=["spdy", "websocket", "translated"])
def exec_pod(world: Kubectl, request: pytest.FixtureRequest) -> tuple[Kubectl, str]:
    """Return a kubectl and the name of a pod, for each way of the data through the server."""
    environment = SPDY if request.param == "spdy" else WEBSOCKETS
    return replace(world, environment=environment), "translated" if request.param == "translated" else "direct"


def test_output_arrives_completely_at_the_rate(exec_pod: tuple[Kubectl, str]) -> None:
    kubectl, pod = exec_pod
    start = time.monotonic()
    assert len(kubectl("exec", pod, "--", "head", "-c", str(SIZE), "/dev/zero")) == SIZE
    assert time.monotonic() - start > 0.8 * SECONDS


def test_input_arrives_completely_at_the_rate(exec_pod: tuple[Kubectl, str]) -> None:
    kubectl, pod = exec_pod
    start = time.monotonic()
    assert kubectl("exec", "-i", pod, "--", "wc", "-c", stdin="x" * SIZE).strip() == str(SIZE)
    assert time.monotonic() - start > 0.8 * SECONDS


def test_small_amounts_are_not_delayed(exec_pod: tuple[Kubectl, str]) -> None:
    kubectl, pod = exec_pod
    done = kubectl.run("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr) == ("out\n", "err\ncommand terminated with exit code 3\n")


@pytest.fixture
def web() -> Iterator[int]:
    """Return the port of a web server that sends `SIZE` bytes and accepts any."""
    with http_server(lambda asked: Answered(body=b"y" * (SIZE if asked.method == "GET" else 1))) as port:
        yield port


@pytest.mark.parametrize("environment", [SPDY, WEBSOCKETS], ids=["spdy", "websocket"])
@pytest.mark.parametrize(("body", "answer"), [(None, SIZE), (b"x" * SIZE, 1)], ids=["from the pod", "to the pod"])
def test_forwarded_ports_are_throttled(
    world: Kubectl, web: int, environment: dict[str, str], body: bytes | None, answer: int
) -> None:
    kubectl, port = replace(world, environment=environment), free_port()
    argv = [*kubectl.command(), "port-forward", "pod/translated", f"{port}:{web}"]
    with subprocess.Popen(argv, env=kubectl.env(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Forwarding from")
            start = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body, timeout=30) as reply:
                assert len(reply.read()) == answer
            assert time.monotonic() - start > 0.8 * SECONDS
        finally:
            process.terminate()


def test_responses_that_are_not_upgraded_are_not_throttled(world: Kubectl, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("z" * 4 * SIZE)
    start = time.monotonic()
    world("create", "configmap", "large", f"--from-file={data}")
    assert len(world("get", "configmap", "large", "-o", "jsonpath={.data.data}")) == 4 * SIZE
    assert time.monotonic() - start < 2 * SECONDS
