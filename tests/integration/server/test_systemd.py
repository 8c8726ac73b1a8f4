"""A server that a service manager started tells it when it is ready, that it lives, and that it stops."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import running
from tetrapod.apps.systemd import ServiceManager


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Yield the socket of a service manager that this process and its servers know."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def test_server_notifies_readiness_heartbeats_and_shutdown(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    with running(tmp_path / "data"):
        assert manager.recv(100) == b"READY=1"
        assert [manager.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
    while (received := manager.recv(100)) == b"WATCHDOG=1":
        pass
    assert received == b"STOPPING=1"


@pytest.mark.parametrize("extra", [{}, {"WATCHDOG_USEC": "100", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}])
async def test_no_heartbeat_without_a_watchdog_for_this_process(manager: socket.socket, extra: dict[str, str]) -> None:
    environment = {"NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"], "PATH": "/bin", **extra}
    service_manager = ServiceManager(environment)
    service_manager.ready()
    service_manager.stopping()
    assert [manager.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]
    assert environment == {"PATH": "/bin"}  # child processes do not notify


def test_abstract_socket_is_notified() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        name = f"tetrapod-test-{os.getpid()}"
        listener.bind(f"\0{name}")
        listener.settimeout(10)
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert listener.recv(100) == b"STOPPING=1"


def test_unreachable_service_manager_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "none")}).stopping()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
