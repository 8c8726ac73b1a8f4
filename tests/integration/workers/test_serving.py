"""Several workers serve one port like one server."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from bench.processes import cpu_seconds
from integration.workers.worker_server import COUNT, WorkerServer, certificates_of_each, created, worker_server
from support.failing_starts import failed_start
from support.waiting import until
from support.wire import Client
from tetrapod.generic.certificates.authority import Authority

pytestmark = pytest.mark.timeout(300)

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"


def is_zombie(pid: int) -> bool:
    """Return whether all threads of a process have ended, so that its files are closed."""
    return ") Z " in Path(f"/proc/{pid}/stat").read_text() and len(list(Path(f"/proc/{pid}/task").iterdir())) == 1


def test_connections_are_distributed_evenly_among_workers(server: WorkerServer) -> None:
    clients = [server.client() for _ in range(4 * COUNT)]
    try:
        for client in clients:
            assert client("GET", CONFIG_MAPS).status == 200
        assert sum(server.connections(pid) for pid in server.pids()) == 4 * COUNT
        assert all(server.connections(pid) >= 2 for pid in server.pids())
    finally:
        for client in clients:
            client.close()


def test_supervisor_without_free_files_waits_and_serves_the_connection_later(server: WorkerServer) -> None:
    pid = server.server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    files = len(os.listdir(f"/proc/{pid}/fd"))

    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, limits[1]))
    try:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), 20) as plain:
            before = cpu_seconds(pid)
            until(server.server.log.read_text, lambda text: "Accept error: [Errno 24] Too many open files" in text)
            threading.Event().wait(1.5)  # the time in which a supervisor that tries again at once is busy
            assert cpu_seconds(pid) - before < 0.5
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            with ssl._create_unverified_context().wrap_socket(plain) as connection:
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert connection.recv(12) == b"HTTP/1.1 200"
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def test_write_at_one_worker_is_read_and_watched_at_the_other(server: WorkerServer) -> None:
    with server.client_of_each() as (one, other):
        version = created(one("POST", CONFIG_MAPS, {"metadata": {"name": "first"}})).json["metadata"]["resourceVersion"]
        assert other("GET", f"{CONFIG_MAPS}/first").status == 200
        names = {item["metadata"]["name"] for item in other("GET", CONFIG_MAPS).json["items"]}
        assert "first" in names
        created(one("POST", CONFIG_MAPS, {"metadata": {"name": "second"}}))
        watch = other("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=2")
        events = [json.loads(line) for line in watch.body.splitlines()]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "second")]
        for name in ("first", "second"):
            assert one("DELETE", f"{CONFIG_MAPS}/{name}").status == 200


def test_killed_worker_is_replaced_while_requests_go_on(server: WorkerServer) -> None:
    killed = server.pids()[0]
    errors: list[Exception] = []
    stopped = threading.Event()

    def request() -> None:
        """Send requests on new connections, as long as the worker is being replaced."""
        while not stopped.is_set():
            try:
                with server.client() as client:
                    assert client("GET", CONFIG_MAPS).status == 200
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=request)
    thread.start()
    try:
        os.kill(killed, signal.SIGKILL)
        replacement = server.wait_for_replacement(killed)
    finally:
        stopped.set()
        thread.join()
    assert errors == []
    assert replacement in server.pids()
    with server.client_of_each() as clients:
        assert [client("GET", CONFIG_MAPS).status for client in clients] == [200] * COUNT


def test_worker_that_is_terminated_alone_is_replaced_and_the_server_stays_an_endpoint(server: WorkerServer) -> None:
    def addresses(client: Client) -> list[Any]:
        subsets = client("GET", ENDPOINTS).json.get("subsets") or []
        return [address["ip"] for subset in subsets for address in subset["addresses"]]

    with server.client_of_each() as (one, _):
        until(lambda: addresses(one), lambda found: found == ["198.51.100.1"])
    for terminated in server.pids():
        os.kill(terminated, signal.SIGTERM)
        server.wait_for_replacement(terminated)
        with server.client() as client:
            assert addresses(client) == ["198.51.100.1"]


def test_connection_that_waits_for_a_worker_is_open_in_one_process(server: WorkerServer) -> None:
    supervisor, killed = server.server.process.pid, server.pids()
    address = urlsplit(server.url)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        connection = socket.create_connection((address.hostname, address.port), 20)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        until(lambda: all(map(is_zombie, killed)))
    finally:
        os.kill(supervisor, signal.SIGCONT)
    with connection, ssl._create_unverified_context().wrap_socket(connection) as client:
        client.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 ")
        pids = until(server.pids, lambda pids: len(pids) == COUNT and not {*killed} & {*pids})
        assert sum(server.has_connection(pid, client.getsockname()[1]) for pid in (supervisor, *pids)) == 1
    until(lambda: server.value("tetrapod_workers"), lambda value: value == COUNT)


def test_server_has_one_identity_lease(server: WorkerServer) -> None:
    with server.client() as client:
        leases = client("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").json["items"]
    label = "apiserver.kubernetes.io/identity"
    assert [lease["metadata"]["labels"][label] for lease in leases if label in lease["metadata"].get("labels", {})] == [
        "kube-apiserver"
    ]


@pytest.mark.long
def test_both_workers_load_a_renewed_certificate(tmp_path: Path) -> None:
    authority = Authority.create("test")
    pair = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write() -> bytes:
        """Write a new certificate, and return it in DER."""
        certificate, key = authority.issue_server("server", ["127.0.0.1"])
        for path, content in zip(pair, (certificate, key), strict=True):
            path.with_suffix(".new").write_bytes(content)
            path.with_suffix(".new").rename(path)
        return x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)

    former = write()
    flags = [f"--tls-cert-file={pair[0]}", f"--tls-private-key-file={pair[1]}"]
    with worker_server(tmp_path, flags) as server:
        assert certificates_of_each(server) == [former] * COUNT
        renewed = write()
        until(lambda: certificates_of_each(server), lambda found: found == [renewed] * COUNT)


def test_sqlite_is_rejected_for_several_workers(tmp_path: Path) -> None:
    failed = failed_start(tmp_path, "--workers=2")
    assert failed.code == 2
    assert "--workers=2 needs --etcd-servers: only one process can use the SQLite database" in failed.stderr


def test_server_whose_workers_cannot_start_ends_with_their_error(tmp_path: Path) -> None:
    flags = ["--etcd-servers=http://127.0.0.1:9", "--tls-cert-file=/missing", "--tls-private-key-file=/missing"]
    failed = failed_start(tmp_path, "--workers=2", *flags)
    assert failed.code == 1
    assert failed.stderr.count("Error: --tls-cert-file: open /missing: no such file or directory") == 1


def test_port_in_use_is_reported(server: WorkerServer, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    failed = failed_start(tmp_path, "--workers=2", "--etcd-servers=http://127.0.0.1:9", f"--secure-port={port}")
    assert failed.code == 1
    assert "bind: address already in use" in failed.stderr
    shutil.rmtree(tmp_path)
