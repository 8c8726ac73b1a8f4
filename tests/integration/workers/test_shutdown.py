"""A server with workers stops as one process does, and reports to the service manager as one."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench.processes import cpu_seconds
from integration.workers.worker_server import COUNT, WATCH, WorkerServer, server_over, worker_server
from support.etcd import running_etcd
from support.waiting import until
from support.wire import raw_connection, read_to_end

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WorkerServer]:
    with worker_server(tmp_path) as server:
        yield server


def ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_sigterm_ends_the_watches_of_all_workers_properly(server: WorkerServer) -> None:
    pids = server.pids()
    with server.of_each(lambda: raw_connection(server), lambda connection: connection.getsockname()[1]) as connections:
        for connection in connections:
            connection.sendall(WATCH)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        server.server.process.send_signal(signal.SIGTERM)
        assert [read_to_end(connection)[-5:] for connection in connections] == [b"0\r\n\r\n"] * COUNT
    assert server.server.process.wait(30) == 0
    assert all(map(ended, pids))


def test_directory_of_workers_is_private_and_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with worker_server(tmp_path) as server:
        (directory,) = tmp_path.glob("tetrapod-workers-*")
        assert directory.stat().st_mode & 0o777 == 0o700
        before = set(directory.iterdir())
        for index in range(COUNT):
            with socket.socket(socket.AF_UNIX) as worker:
                worker.connect(str(directory / f"{index}.sock"))
                with suppress(BrokenPipeError, ConnectionResetError):
                    worker.sendall(b"reset ../../data" + b"x" * 10_000_000)
        assert server.value("tetrapod_workers") == COUNT
        assert before <= set(directory.iterdir())
    assert not directory.exists()


def test_supervisor_is_idle_while_the_server_shuts_down(tmp_path: Path) -> None:
    with worker_server(tmp_path, ("--shutdown-delay-duration=6s",)) as server:
        process = server.server.process
        killed = server.pids()[0]
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        os.kill(killed, signal.SIGKILL)  # it is not replaced any more
        until(lambda: ended(killed))
        used = cpu_seconds(process.pid)
        time.sleep(3)
        assert cpu_seconds(process.pid) - used < 0.5
        assert process.wait(30) == 0


def test_workers_end_if_their_supervisor_is_killed(server: WorkerServer) -> None:
    pids = server.pids()
    server.server.process.kill()
    server.server.process.wait()
    until(lambda: [pid for pid in pids if not ended(pid)], lambda alive: not alive)


def test_service_manager_sees_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_etcd(tmp_path / "etcd") as etcd, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "4000000")
        with server_over(etcd, tmp_path) as server:
            assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            blocked = server.pids()[0]
            os.kill(blocked, signal.SIGSTOP)  # its event loop blocks for longer than the watchdog permits
            server.wait_for_replacement(blocked)
        received: list[bytes] = []
        while not received or received[-1] != b"STOPPING=1":
            received.append(manager.recv(100))
        assert set(received[:-1]) <= {b"WATCHDOG=1"}


def test_a_worker_that_does_not_answer_gets_no_connections(server: WorkerServer) -> None:
    frozen, other = server.pids()
    os.kill(frozen, signal.SIGSTOP)
    try:
        time.sleep(4)  # the supervisor has no interface that shows which workers it considers silent
        clients = [server.client() for _ in range(4)]
        for client in clients:
            assert client("GET", "/readyz").status == 200
        assert server.connections(other) == 4
        for client in clients:
            client.close()
    finally:
        os.kill(frozen, signal.SIGCONT)
