"""The servers that are measured: one process over SQLite, four services over etcd, and upstream's kube-apiserver."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stall.extended import AUDIT_POLICY
from support.kube_apiserver import running as running_kube_apiserver
from support.server import SERVICES, end, environment, free_port, wait_ready
from support.services import Services

_TESTS: Final = Path(__file__).parents[1]
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TOKENS: Final = """admin-token,admin,admin,"system:masters"
user-token,user,user,"users"
editor-token,editor,editor,"editors"
probe-token,probe,probe,"probes"
"""


@dataclass(frozen=True)
class World:
    """A running server.

    Attributes:
        pids: the processes of the server, by name.
        sockets: the directory of their control sockets; None for a server that is not Tetrapod.
    """

    name: str
    url: str
    ca: Path
    pids: Mapping[str, int]
    sockets: Path | None = field(default=None, repr=False)

    def control(self, command: str) -> dict[str, dict[str, float]]:
        """Send a command to every process (launcher.py), and return the measurements of each."""
        if self.sockets is None:
            return {
                name: {"step": 0.0, "wall": 0.0, "cpu": 0.0, "rss": _rss(pid), "peak": _rss(pid)}
                for name, pid in self.pids.items()
            }
        return {name: _ask(self.sockets / str(pid), command) for name, pid in self.pids.items()}

    def cpu(self) -> float:
        """Return the CPU seconds that all processes have used."""
        return sum(_cpu(pid) for pid in self.pids.values())


def _ask(path: Path, command: str) -> dict[str, float]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(120)
        connection.connect(str(path))
        connection.sendall(command.encode())
        answer: dict[str, float] = json.loads(connection.recv(4096))
    return answer


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _rss(pid: int) -> float:
    return float(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE)


def _variables(sockets: Path) -> dict[str, str]:
    sockets.mkdir(parents=True, exist_ok=True)
    return {**environment(), "PYTHONPATH": f"{SERVICES}:{_TESTS}", "STALL_SOCKETS": str(sockets)}


def _audit_flags(directory: Path) -> tuple[str, ...]:
    policy = directory / "audit-policy.yaml"
    policy.write_text(AUDIT_POLICY)
    return ("--audit-policy-file", str(policy), "--audit-log-path", str(directory / "audit.log"))


@contextmanager
def one_process(directory: Path, *flags: str, name: str = "one process") -> Iterator[World]:
    """`tetrapod up` over SQLite."""
    data, sockets, port = directory / "data", directory / "s", free_port()
    data.mkdir(parents=True)
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    argv = [sys.executable, "-m", "stall.launcher", "up", "--data-dir", str(data), "--bind-address", "127.0.0.1"]
    argv += ["--secure-port", str(port), "--token-auth-file", str(tokens), *_audit_flags(directory), *flags]
    log = directory / "server.log"
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=_variables(sockets))
    try:
        url = f"https://127.0.0.1:{port}"
        wait_ready(url, process, log)
        yield World(name, url, data / "pki" / "ca.crt", {"tetrapod": process.pid}, sockets)
    finally:
        end(process)


def with_cbor(directory: Path) -> AbstractContextManager[World]:
    """One process that reads and writes CBOR, which is off by default."""
    return one_process(directory, "--feature-gates=CBORServingAndStorage=true", name="one process with CBOR")


@contextmanager
def four_services(directory: Path) -> Iterator[World]:
    """The four services over one member of etcd."""
    sockets = directory / "s"
    directory.mkdir(parents=True, exist_ok=True)
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    services = Services(directory, module="stall.launcher")
    services.etcd.start()
    try:
        for key in services.keys:
            flags = {"auth": ("--token-auth-file", str(tokens)), "aggregator": _audit_flags(directory)}
            services.start(key, *flags.get(key, ()), env=_variables(sockets))
        for key in services.keys:
            services.wait_ready(key)
        pids = {name: process.pid for name, process in services.processes.items()}
        yield World("four services", services.url, services.ca, pids, sockets)
    finally:
        services.stop_all(*services.processes)
        services.etcd.stop()


@contextmanager
def kube_apiserver(directory: Path) -> Iterator[World]:
    """Upstream's kube-apiserver, from the environment variable KUBE_APISERVER."""
    binary = Path(os.environ["KUBE_APISERVER"])
    directory.mkdir(parents=True, exist_ok=True)
    with running_kube_apiserver(binary, directory, tokens=TOKENS) as server:
        yield World("kube-apiserver", server.url, server.ca, {"kube-apiserver": server.pid})


FORMS: Final[Mapping[str, Any]] = {
    "one": one_process,
    "four": four_services,
    "cbor": with_cbor,
    "kube-apiserver": kube_apiserver,
}
