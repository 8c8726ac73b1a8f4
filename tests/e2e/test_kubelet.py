"""kubectl's streams through the server to a kubelet, over SPDY and over WebSocket."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from support.http_server import Answered, http_server
from support.kubectl import Kubectl
from support.kubelet import FakeKubelet, fake_kubelet
from support.server import free_port, running
from tetrapod.generic.certificates.authority import Authority

pytestmark = pytest.mark.timeout(300)

WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@dataclass(frozen=True)
class World:
    kubectl: Kubectl
    kubelet: FakeKubelet


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("kubelet")
    certificate, key = Authority.create("us").issue_client("tetrapod-kubelet-client")
    (directory / "us.crt").write_bytes(certificate)
    (directory / "us.key").write_bytes(key)
    flags = [
        f"--kubelet-{name}={directory / file}"
        for name, file in (("client-certificate", "us.crt"), ("client-key", "us.key"))
    ]
    flags += [
        f"--kubelet-certificate-authority={directory / 'kubelet-ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]
    with fake_kubelet(directory) as kubelet, running(directory / "data", *flags) as server:
        kubectl = Kubectl(tmp_path_factory.mktemp("home"), server.kubeconfig, "default")
        kubectl.exists("serviceaccount/default")
        add_node(kubectl, "n", kubelet.port)
        add_pod(kubectl, "p", "n")
        yield World(kubectl, kubelet)


def add_node(kubectl: Kubectl, name: str, port: int, **status: object) -> None:
    addresses = [
        {"type": "Hostname", "address": "no.such.host.invalid"},
        {"type": "InternalIP", "address": "127.0.0.1"},
    ]
    found = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}, **status}
    kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": found}),
    )


def add_pod(kubectl: Kubectl, name: str, node: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "x", "stdin": True}]}
    kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}),
    )
    state = {
        "name": "c",
        "ready": True,
        "started": True,
        "image": "x",
        "imageID": "x",
        "restartCount": 0,
        "state": {"running": {}},
    }
    status = {"phase": "Running", "containerStatuses": [state], "conditions": [{"type": "Ready", "status": "True"}]}
    kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


@pytest.fixture(params=[SPDY, WEBSOCKETS], ids=["spdy", "websocket"])
def kubectl(world: World, request: pytest.FixtureRequest) -> Kubectl:
    return replace(world.kubectl, environment=request.param)


def test_exec_connects_stdin_stdout_and_stderr(kubectl: Kubectl) -> None:
    assert kubectl("exec", "p", "--", "echo", "hello", "world & more") == "hello world & more\n"
    assert kubectl("exec", "-i", "p", "--", "wc", "-c", stdin="x" * 300_000).strip() == "300000"
    done = kubectl.run("exec", "p", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert len(kubectl("exec", "p", "--", "head", "-c", "3000000", "/dev/zero")) == 3_000_000


def test_exit_codes_come_through(kubectl: Kubectl) -> None:
    done = kubectl.run("exec", "p", "--", "sh", "-c", "exit 7")
    assert (done.returncode, done.stderr) == (7, "command terminated with exit code 7\n")
    assert "no such file or directory" in kubectl.fails("exec", "p", "--", "/no/such/program")


def test_terminal_sizes_are_passed_on(kubectl: Kubectl) -> None:
    command = " ".join([*kubectl.command(), "exec", "-it", "p", "--", "echo", "done"])
    argv = ["script", "-qec", f"stty cols 90 rows 20; {command}", "/dev/null"]
    done = subprocess.run(argv, env=kubectl.env(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["terminal", "90x20", "done"], done


def test_attach_connects_to_the_container(kubectl: Kubectl) -> None:
    assert kubectl("attach", "-i", "p", stdin="one\ntwo\n") == "one\ntwo\n"


def test_cp_copies_files_in_both_directions(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(os.urandom(500_000))
    there, back = f"{tmp_path}/there", tmp_path / "back"
    kubectl("cp", str(tmp_path / "from"), f"default/p:{there}")
    kubectl("cp", f"default/p:{there}", str(back))
    assert back.read_bytes() == (tmp_path / "from").read_bytes()


@pytest.fixture(scope="module")
def web() -> Iterator[int]:
    with http_server(lambda _: Answered(body=b"y" * 200_000)) as port:
        yield port


def test_ports_are_forwarded(kubectl: Kubectl, web: int) -> None:
    port = free_port()
    argv = [*kubectl.command(), "port-forward", "pod/p", f"{port}:{web}"]
    with subprocess.Popen(
        argv, env=kubectl.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Forwarding from")
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                    assert answer.read() == b"y" * 200_000
        finally:
            process.terminate()


def test_websocket_is_translated_to_spdy_unless_the_kubelet_supports_it(world: World) -> None:
    kubectl = replace(world.kubectl, environment=WEBSOCKETS)
    kubectl("exec", "p", "--", "true")
    if not asks_for_websockets(kubectl):
        pytest.skip("not applicable: this kubectl has no WebSocket")
    last = world.kubelet.requests()[-1]
    assert (last["method"], last["upgrade"], last["uri"]) == (
        "POST",
        "SPDY/3.1",
        "/exec/default/p/c?command=true&error=1&output=1",
    )
    assert last["who"] == "tetrapod-kubelet-client"
    add_node(kubectl, "modern", world.kubelet.port, declaredFeatures=["ExtendWebSocketsToKubelet"])
    add_pod(kubectl, "q", "modern")
    kubectl.run("exec", "q", "--", "true")
    assert any(asked["upgrade"].lower() == "websocket" and asked["protocol"] for asked in world.kubelet.requests())


def asks_for_websockets(kubectl: Kubectl) -> bool:
    return "Sec-Websocket-Protocol" in kubectl.run("exec", "p", "-v=8", "--", "true").stderr


def test_logs_are_read_and_followed(world: World) -> None:
    assert world.kubectl("logs", "p", "--tail=5").splitlines() == [
        "first line",
        "/containerLogs/default/p/c?tailLines=5",
    ]
    assert world.kubectl("logs", "p", "-f").splitlines()[-1] == "and later"


def test_the_node_proxy_does_not_reach_loopback(world: World) -> None:
    assert "address not allowed" in world.kubectl.fails("get", "--raw", "/api/v1/nodes/n/proxy/metrics?x=1")


def test_an_unreachable_kubelet_is_reported(world: World) -> None:
    for environment in (SPDY, WEBSOCKETS):
        kubectl = replace(world.kubectl, environment=environment)
        closed = free_port()
        name = f"away-{closed}"
        add_node(kubectl, name, closed)
        add_pod(kubectl, name, name)
        assert f"dial tcp 127.0.0.1:{closed}: connect: connection refused" in kubectl.fails("exec", name, "--", "true")
        gone = f"gone-{closed}"
        add_pod(kubectl, gone, gone)
        assert f'pods "{gone}" not found' in kubectl.fails("exec", gone, "--", "true")


def test_a_kubelet_with_a_certificate_of_another_ca_is_rejected(world: World, tmp_path: Path) -> None:
    with fake_kubelet(tmp_path) as stranger:
        add_node(world.kubectl, "stranger", stranger.port)
        add_pod(world.kubectl, "s", "stranger")
        assert "tls: failed to verify certificate" in world.kubectl.fails("exec", "s", "--", "true")
        assert "first line" in world.kubectl("logs", "s", "--insecure-skip-tls-verify-backend")
        assert "first line" not in world.kubectl.run("logs", "s").stdout


def test_a_read_only_user_cannot_exec_over_websocket(world: World) -> None:
    world.kubectl("create", "role", "reader", "--verb=get", "--resource=pods,pods/exec")
    world.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=reader")
    for environment in (SPDY, WEBSOCKETS):
        output = replace(world.kubectl, environment=environment).fails("exec", "p", "--as=reader", "--", "true")
        assert "forbidden" in output.lower(), output
