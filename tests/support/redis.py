"""A redis server for one test, which can hang, stop and start again."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from support.network import Loopback, Network
from support.server import free_port, freeze
from support.waiting import until


class Redis:
    """A redis server without persistence, on loopback or on a given network."""

    def __init__(self, directory: Path, network: Network | None = None) -> None:
        self._directory = directory
        self._network = network or Loopback()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"redis://{self._network.address('redis')}:{self._port}/0"

    def start(self) -> None:
        binary = shutil.which("redis-server")
        assert binary, "redis-server is installed by tools/prepare.sh"
        where = self._network.address("redis")
        argv = [
            binary,
            "--bind",
            where,
            "--protected-mode",
            "no",
            "--port",
            str(self._port),
            "--save",
            "",
            "--dir",
            str(self._directory),
        ]
        self._process = subprocess.Popen([*self._network.command_prefix("redis"), *argv], stdout=subprocess.DEVNULL)
        until(lambda: self._listens(where), timeout=10, description="redis")

    def _listens(self, where: str) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((where, self._port)) == 0

    def hang(self) -> None:
        """Suspend the process until `stop`."""
        assert self._process is not None
        freeze(self._process)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
