"""Services of one host reach each other by Unix sockets (--unix-socket), on which they serve their own user only."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from integration.workers.worker_server import TOKENS, WATCH, children_of, sockets_in
from support.failing_starts import run_command
from support.kubectl import Kubectl
from support.server import free_port
from support.services import Services, running_services
from support.waiting import until
from support.wire import Client, raw_connection, read_to_end

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NOBODY = 65534
_CONNECTED = "03"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")


class SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, target: str, headers: Mapping[str, str]) -> tuple[int, Any]:
    """Send a GET request to a Unix socket, and return the status and the decoded body."""
    with closing(SocketConnection(path)) as connection:
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def connections_to(path: Path) -> int:
    """Return how many connections a server has accepted on a Unix socket and not closed."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return sum(1 for fields in lines if fields[-1] == str(path) and fields[5] == _CONNECTED)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    flags = {"auth": (f"--token-auth-file={TOKENS}",), "core": ("--workers=2",)}
    with running_services(tmp_path_factory.mktemp("services"), None, True, **flags) as services:
        until(services.log("core").read_text, lambda text: "tetrapod core is ready" in text)
        yield services


def test_every_service_is_reached_through_the_aggregator(services: Services, tmp_path: Path) -> None:
    kubectl = Kubectl(tmp_path, services.kubeconfig)
    assert "cluster-admin" in kubectl("get", "clusterroles", "-o", "name")
    kubectl("create", "configmap", "a", "--from-literal=x=y")
    assert kubectl.json("get", "configmap", "a")["data"] == {"x": "y"}
    assert "No resources found" in kubectl("get", "crd") or kubectl.json("get", "crd")["items"] == []
    until(lambda: kubectl("get", "serviceaccounts", "-o", "name"), lambda names: "serviceaccount/default" in names)
    token = kubectl("create", "token", "default").strip()
    with Client(services, token) as client:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        reviewed = client("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert reviewed.json["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    kubectl("create", "namespace", "gone")
    until(lambda: kubectl("get", "serviceaccounts", "-n", "gone", "-o", "name"), lambda names: "default" in names)
    kubectl("delete", "namespace", "gone", "--timeout=60s")


def test_the_user_of_the_front_proxy_is_authorized(services: Services) -> None:
    status, body = ask(services.socket("core"), CONFIG_MAPS, {"X-Remote-User": "alice", "X-Remote-Group": "system:x"})
    assert (status, body["message"]) == (
        403,
        'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace '
        '"default"',
    )
    headers = {"X-Remote-User": "alice", "X-Remote-Group": "system:masters"}
    assert ask(services.socket("core"), CONFIG_MAPS, headers)[0] == 200


def test_a_process_without_identity_headers_is_anonymous(services: Services) -> None:
    status, body = ask(services.socket("core"), CONFIG_MAPS, {})
    assert status == 403
    assert 'User "system:anonymous"' in body["message"]


def test_clients_of_the_port_are_not_trusted(services: Services) -> None:
    with Client(services, "user-token") as client:
        forged = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
        assert client("GET", "/api/v1/secrets", headers=forged).status in (401, 403)


def test_watches_share_a_connection(services: Services) -> None:
    before = connections_to(services.socket("core"))
    with ExitStack() as stack:
        watches = [stack.enter_context(raw_connection(services)) for _ in range(40)]
        for watch in watches:
            watch.sendall(WATCH)
            assert watch.recv(4096).startswith(b"HTTP/1.1 200")
        assert connections_to(services.socket("core")) < before + 10
        with Client(services) as client:
            assert client("POST", CONFIG_MAPS, {"metadata": {"name": "seen-by-all"}}).status == 201
        for watch in watches:
            received = b""
            while b"seen-by-all" not in received:
                received += watch.recv(65536)


def test_large_bodies_pass_in_both_directions(services: Services) -> None:
    value = "x" * 900_000
    with Client(services) as client:
        for name in ("large-1", "large-2", "large-3"):
            assert client("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"v": value}}).status == 201
        listed = client("GET", CONFIG_MAPS).json
    assert [item["data"]["v"] == value for item in listed["items"] if "large" in item["metadata"]["name"]] == [True] * 3


def test_both_workers_serve_the_socket(services: Services) -> None:
    headers = {"X-Remote-User": "alice", "X-Remote-Group": "system:masters"}
    held = []
    with ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(closing(SocketConnection(services.socket("core"))))
            connection.request("GET", "/metrics", headers=headers)
            connection.getresponse().read()
            held.append(connection)
        counts = [sockets_of(pid) for pid in children_of(services.processes["core"].pid)]
    assert all(counts), counts


def sockets_of(pid: int) -> int:
    """Return how many connections to a service's Unix socket a process has accepted."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    inodes = {fields[6] for fields in rows if len(fields) > 7 and fields[7].endswith("core.sock")}
    return len(inodes & sockets_in(pid))


def test_the_file_is_for_its_user_only(services: Services) -> None:
    assert {stat.S_IMODE(services.socket(name).stat().st_mode) for name in services.processes} == {0o600}


_CONNECT = """
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    head = b"GET /api HTTP/1.1\\r\\nHost: x\\r\\n"
    connection.sendall(head + b"X-Remote-User: a\\r\\nX-Remote-Group: system:masters\\r\\n\\r\\n")
    print(len(connection.recv(100)))
except ConnectionError:
    print(0)
"""


@needs_root
def test_processes_of_other_users_are_rejected_although_they_reach_the_file(services: Services) -> None:
    assert services.sockets is not None
    path = services.socket("extensions")
    argv = [sys.executable, "-c", _CONNECT, str(path)]
    services.sockets.chmod(0o755)
    assert "PermissionError" in subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    path.chmod(0o666)
    try:
        assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == "0"
    finally:
        path.chmod(0o600)
    assert "a process of another user" in services.log("extensions").read_text()


_LISTEN = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
os.fchmod(listener.fileno(), 0o777)
os.setgid(65534)
os.setuid(65534)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    print(connection.recv(1000), flush=True)
"""


@needs_root
def test_a_server_of_another_user_gets_no_requests(services: Services, tmp_path: Path) -> None:
    assert services.sockets is not None
    path = services.socket("extensions")
    services.stop("extensions")
    services.sockets.chmod(0o777)
    argv = [sys.executable, "-c", _LISTEN, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as impostor:
        try:
            assert impostor.stdout is not None
            assert impostor.stdout.readline() == "listening\n"
            with Client(services) as client:
                answer = client("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            assert answer.status == 503
            assert f"dial unix {path}: a process of another user listens" in answer.json["message"]
        finally:
            impostor.kill()
        assert not [line for line in impostor.stdout if "GET" in line]
    services.sockets.chmod(0o700)
    path.unlink()
    services.start("extensions")
    services.wait_ready("extensions")


def test_a_socket_that_a_killed_process_left_is_replaced(services: Services) -> None:
    path = services.socket("extensions")
    services.stop("extensions", signal.SIGKILL)
    assert path.exists()
    services.start("extensions")
    services.wait_ready("extensions")
    with Client(services) as client:
        until(lambda: client("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").status == 200)


def test_a_stopped_service_removes_its_socket_and_ends_its_watches(services: Services) -> None:
    path = services.socket("extensions")
    target = b"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?watch=1 HTTP/1.1\r\nHost: x\r\n"
    with raw_connection(services) as watch:
        watch.sendall(target + b"Authorization: Bearer admin-token\r\nConnection: close\r\n\r\n")
        assert watch.recv(4096).startswith(b"HTTP/1.1 200")
        assert services.stop("extensions") == 0
        assert read_to_end(watch).endswith(b"0\r\n\r\n")
    assert not path.exists()
    with Client(services) as client:
        answer = client("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    assert answer.status == 503
    assert "connect: no such file or directory" in answer.json["message"]
    services.start("extensions")
    services.wait_ready("extensions")


def _start(services: Services, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a service that does not start, and return its exit code and output."""
    own = ("--data-dir", str(services.certs / name), "--bind-address", "127.0.0.1", "--secure-port", str(free_port()))
    return run_command("serve", name, *own, "--etcd-servers", services.etcd.url, *flags)


def test_a_socket_in_use_is_not_taken_over(services: Services) -> None:
    path = services.socket("extensions")
    urls = ["--aggregator-url", services.url, "--auth-url", services.address("auth")]
    ended = _start(services, "extensions", "--unix-socket", str(path), *urls)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"Error: failed to create listener: failed to listen on {path}: "
        f"listen unix {path}: bind: address already in use"
    )
    assert ask(path, "/readyz/ping", {}) is not None


@pytest.mark.parametrize(
    ("name", "flags", "error"),
    [
        (
            "extensions",
            ["--aggregator-url=unix:///run/a.sock,https://localhost:1", "--auth-url=https://localhost:1"],
            "--aggregator-url: a Unix socket must be the only URL",
        ),
        (
            "extensions",
            ["--aggregator-url=unix:run/a.sock", "--auth-url=https://localhost:1"],
            "--aggregator-url: 'unix:run/a.sock' is not unix:///PATH",
        ),
        (
            "auth",
            ["--aggregator-url=unix:///run/a.sock"],
            "--external-hostname HOST:PORT is needed if --aggregator-url is a Unix socket",
        ),
    ],
)
def test_invalid_urls_prevent_the_start(services: Services, name: str, flags: list[str], error: str) -> None:
    ended = _start(services, name, *flags)
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1] == f"Error: {error}"
