"""Konnectivity's proxy server and agent as child processes, in the mode gRPC at a Unix socket."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.goprogram import build_go_program
from support.server import end, free_port
from support.waiting import until
from tetrapod.generic.certificates.authority import Authority

SOURCE = Path(__file__).parent / "konnectivity_go"


@dataclass
class Konnectivity:
    """A running proxy server with one agent.

    Attributes:
        socket: the path of the proxy server's Unix socket.
        server: its process.
        agent: the process of the agent.
        admin_port: the port of the proxy server's metrics.
    """

    socket: Path
    server: subprocess.Popen[bytes]
    agent: subprocess.Popen[bytes]
    admin_port: int

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def konnectivity(directory: Path, socket: Path) -> Iterator[Konnectivity]:
    """Run a proxy server and an agent, and yield them when the agent is connected.

    Args:
        directory: the directory for certificates and logs.
        socket: the path of the Unix socket. It must be short.
    """
    program = build_go_program(SOURCE, "konnectivity")
    directory.mkdir(exist_ok=True)
    authority = Authority.create("konnectivity-ca")
    for name, pair in (
        ("server", authority.issue_server("server", ["localhost", "127.0.0.1"])),
        ("agent", authority.issue_client("agent")),
    ):
        (directory / f"{name}.crt").write_bytes(pair[0])
        (directory / f"{name}.key").write_bytes(pair[1])
    (directory / "ca.crt").write_bytes(authority.certificate_pem)
    agent_port, server_health, server_admin, agent_health, agent_admin = (free_port() for _ in range(5))
    server_flags = {
        "mode": "grpc",
        "uds-name": socket,
        "server-port": 0,
        "cluster-cert": directory / "server.crt",
        "cluster-key": directory / "server.key",
        "cluster-ca-cert": directory / "ca.crt",
        "agent-port": agent_port,
        "admin-port": server_admin,
        "health-port": server_health,
    }
    agent_flags = {
        "ca-cert": directory / "ca.crt",
        "agent-cert": directory / "agent.crt",
        "agent-key": directory / "agent.key",
        "proxy-server-host": "127.0.0.1",
        "proxy-server-port": agent_port,
        "health-server-port": agent_health,
        "admin-server-port": agent_admin,
        "sync-interval": "200ms",
    }
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name, flags in (("server", server_flags), ("agent", agent_flags)):
            with (directory / f"{name}.log").open("ab") as log:
                argv = [str(program), name, *(f"--{flag}={value}" for flag, value in flags.items())]
                processes.append(subprocess.Popen(argv, stdout=log, stderr=log))
        until(lambda: _ready(server_health))
        yield Konnectivity(socket, processes[0], processes[1], server_admin)
    finally:
        for process in processes:
            if process.poll() is None:
                end(process)


def _ready(port: int) -> bool:
    """Return whether the proxy server has an agent."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            ready: bool = answer.status == 200
            return ready
    except (urllib.error.URLError, OSError):
        return False
