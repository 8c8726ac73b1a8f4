"""The servers that are measured: Tetrapod as one process, as four over etcd, and the real kube-apiserver over etcd if
present.
"""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.h2load import STREAMS
from support import kube_apiserver
from support.etcd import Etcd, etcd_36
from support.server import SERVICES, environment, free_port
from tetrapod.apps.options.options import DATABASE
from tetrapod.generic.certificates.pki import write_pki

TOKEN = "bench-0123456789abcdef"
USERS = "bench:users"
QUIET, FLOODING = "quiet-0123456789abcdef", "flooding-0123456789abcdef"
"""The tokens of two users."""
_CONTEXT = ssl._create_unverified_context()
_SERVICE_RANGE = "--service-cluster-ip-range=10.0.0.0/16"
"""Enough addresses for the services of a large cluster."""
_STREAMS = f"--http2-max-streams-per-connection={STREAMS}"


class NotStarted(Exception):
    """The target could not be started. The message is shown in the table."""


@dataclass(frozen=True)
class Program:
    """The modules of Tetrapod under measurement, and the interpreter that runs them.

    Attributes:
        services: the directory that contains the package `tetrapod`.
        python: the path of an interpreter that has Tetrapod's dependencies.
    """

    services: Path = SERVICES
    python: str = sys.executable


OURS: Final = Program()


class Target(ABC):
    """A server under measurement. `processes` are those whose CPU time and memory count, which excludes etcd."""

    title = ""
    key = ""
    users: Sequence[str] = ()
    """Further lines of the token file."""
    flags: Sequence[str] = ()
    """Further flags of each process."""
    ready_within = 60.0
    """Seconds within which `start` must succeed."""

    def __init__(self, directory: Path, program: Program = OURS) -> None:
        self.directory = directory
        self._python = program.python
        self._environment = {**environment(), "PYTHONPATH": str(program.services)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._number = 0
        self._data = directory

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes.values()]

    @property
    def store_pids(self) -> list[int]:
        """The processes of the store; empty if it is in the server's own."""
        return []

    def fresh(self) -> None:
        """Restart with an empty store."""
        self._number += 1
        self._data = self.directory / f"{self.key}-{self._number}"
        self._data.mkdir(parents=True)
        lines = [f'{TOKEN},bench,bench,"system:masters"', f'{QUIET},quiet,quiet,"{USERS}"']
        lines += [f'{FLOODING},flooding,flooding,"{USERS}"', *self.users]
        (self._data / "tokens.csv").write_text("".join(f"{line}\n" for line in lines))
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the files that the server needs before its first start."""
        return

    @abstractmethod
    def start(self) -> float:
        """Start, wait until ready, and return the seconds until then."""

    @property
    @abstractmethod
    def url(self) -> str: ...

    def _command(self, *arguments: str) -> list[str]:
        """Return the command line of `tetrapod` with these arguments."""
        return [self._python, "-m", "tetrapod.cli.main", *arguments]

    def _up(self, port: int, *further: str) -> float:
        """Start `tetrapod up` with further flags, wait until it is ready, and return the seconds until then."""
        begun = time.monotonic()
        flags = ["--data-dir", str(self._data / "data"), "--bind-address", "127.0.0.1", "--secure-port", str(port)]
        flags += [_STREAMS, _SERVICE_RANGE, "--token-auth-file", str(self._data / "tokens.csv"), *further]
        self._spawn("tetrapod", self._command("up", *flags))
        self._wait_ready("tetrapod", port)
        return time.monotonic() - begun

    def _spawn(self, name: str, argv: list[str]) -> None:
        with (self._data / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen([*argv, *self.flags], stdout=log, stderr=log, env=self._environment)

    def _wait_ready(self, name: str, port: int) -> None:
        """Wait until `/readyz` of one process returns 200."""
        deadline = time.monotonic() + self.ready_within
        process = self.processes[name]
        while not _ready(port):
            if process.poll() is not None:
                raise NotStarted(f"{name} ended with {process.returncode}: {self._last_words(name)}")
            if time.monotonic() > deadline:
                raise NotStarted(f"{name} was not ready after {self.ready_within:.0f} s: {self._last_words(name)}")
            time.sleep(0.01)

    def _last_words(self, name: str) -> str:
        lines = (self._data / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "no output"

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def close(self) -> None:
        self.stop()


def _ready(port: int) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=_CONTEXT)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Embedded(Target):
    """`tetrapod up` over SQLite."""

    title = "One process over SQLite"
    key = "embedded"

    def __init__(self, directory: Path, program: Program = OURS) -> None:
        super().__init__(directory, program)
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def database(self) -> Path:
        return self._data / "data" / DATABASE

    def start(self) -> float:
        return self._up(self._port)


class OverEtcd(Target):
    """A target over its own etcd, which is not measured."""

    def __init__(self, directory: Path, program: Program = OURS) -> None:
        super().__init__(directory, program)
        self._etcd: Etcd | None = None

    def _etcd_binary(self) -> str:
        return etcd_36()

    def _prepare(self) -> None:
        self._stop_etcd()
        self._etcd = Etcd(self._etcd_binary(), self._data / "etcd")
        self._etcd.start()

    @property
    def store_pids(self) -> list[int]:
        return [] if self._etcd is None else [self._etcd.pid]

    @property
    def etcd_url(self) -> str:
        if self._etcd is None:
            raise NotStarted("etcd is not there")
        return self._etcd.url

    def _stop_etcd(self) -> None:
        if self._etcd is not None:
            self._etcd.stop()
            self._etcd = None

    def close(self) -> None:
        super().close()
        self._stop_etcd()


class Four(OverEtcd):
    """`tetrapod certs` and the four `tetrapod serve`."""

    title = "Four services over etcd"
    key = "four"

    def __init__(self, directory: Path, program: Program = OURS) -> None:
        super().__init__(directory, program)
        self._ports = {name: free_port() for name in ("aggregator", "core", "extensions", "auth")}

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._ports['aggregator']}"

    def _prepare(self) -> None:
        super()._prepare()
        argv = self._command("certs", "--out", str(self._data / "certs"), "--hosts", "localhost,127.0.0.1")
        done = subprocess.run(argv, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotStarted(f"tetrapod certs: {done.stderr.strip()[-200:]}")

    def start(self) -> float:
        begun = time.monotonic()
        urls = {name: self._address(name) for name in self._ports}
        peers = {
            "aggregator": ("core", "extensions", "auth"),
            "core": ("aggregator", "auth"),
            "extensions": ("aggregator", "auth"),
            "auth": ("aggregator",),
        }
        for name, port in self._ports.items():
            flags = [
                "--data-dir",
                str(self._data / "certs" / name),
                "--bind-address",
                "127.0.0.1",
                "--secure-port",
                str(port),
            ]
            flags += ["--etcd-servers", self.etcd_url]
            for peer in peers[name]:
                flags += [f"--{peer}-url", urls[peer]]
            flags += self._further(name)
            if name == "aggregator":
                flags.append(_STREAMS)
            if name == "core":
                flags.append(_SERVICE_RANGE)
            if name == "auth":
                flags += ["--token-auth-file", str(self._data / "tokens.csv")]
            self._spawn(name, self._command("serve", name, *flags))
        for name, port in self._ports.items():
            self._wait_ready(name, port)
        return time.monotonic() - begun

    def _address(self, name: str) -> str:
        """Return the URL of a service for the others."""
        return f"https://localhost:{self._ports[name]}"

    def _further(self, name: str) -> list[str]:
        """Return further flags of a service."""
        return []


class Colocated(Four):
    """The four services, which reach each other by Unix sockets."""

    title = "Four services over etcd, with Unix sockets between them"
    key = "colocated"

    def _address(self, name: str) -> str:
        return f"unix://{self._data / name}.sock"

    def _further(self, name: str) -> list[str]:
        hostname = ["--external-hostname", self.url.removeprefix("https://")] if name == "auth" else []
        return ["--unix-socket", f"{self._data / name}.sock", *hostname]


class Real(OverEtcd):
    """kube-apiserver, from the path in KUBE_APISERVER; its etcd from ETCD."""

    title = "kube-apiserver over etcd"
    key = "real"

    def __init__(self, directory: Path, program: Program = OURS) -> None:
        super().__init__(directory, program)
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def _etcd_binary(self) -> str:
        return os.environ.get("ETCD") or etcd_36()

    def _prepare(self) -> None:
        super()._prepare()
        write_pki(self._data / "pki", ["localhost", "127.0.0.1"])

    def start(self) -> float:
        begun = time.monotonic()
        argv = kube_apiserver.arguments(
            os.environ["KUBE_APISERVER"], self.etcd_url, self._port, self._data / "pki", self._data
        )
        self._spawn("kube-apiserver", [*argv, _STREAMS, _SERVICE_RANGE])
        self._wait_ready("kube-apiserver", self._port)
        return time.monotonic() - begun
