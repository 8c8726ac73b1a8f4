"""Network namespaces for tests that change addresses or packet filters. The kernel removes everything with them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self, TypeVar

from support.waiting import until

T = TypeVar("T")

_CLONE_NEWNET: Final = 0x40000000


class Namespace:
    """A network namespace, which exists until `close`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdout=subprocess.DEVNULL)
        own = Path("/proc/self/ns/net").readlink()
        self._path = Path(f"/proc/{self.process.pid}/ns/net")
        until(lambda: self._path.readlink() != own, description="a network namespace")
        self._thread = ThreadPoolExecutor(1, initializer=self._enter)

    def _enter(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def within(self, function: Callable[[], T]) -> T:
        """Call a function in a thread that is in the namespace. Sockets and processes that it makes are there, too."""
        return self._thread.submit(function).result()

    def run(self, *argv: str) -> str:
        """Run a command in the namespace, check that it succeeds, and return its output."""
        return self.within(lambda: _run(argv))

    def ip(self, *commands: str) -> None:
        """Run commands of ip in the namespace."""
        self.within(lambda: ip(*commands))

    def start(
        self, argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process in the namespace, which appends its output to a log."""
        with log.open("ab") as out:
            return self.within(lambda: subprocess.Popen(argv, stdout=out, stderr=out, env=environment))

    def close(self) -> None:
        """End the namespace."""
        self._thread.shutdown()
        self.process.kill()
        self.process.wait()


def ip(*commands: str) -> None:
    """Run commands of ip in the namespace of this process."""
    _run(["ip", "-batch", "-"], "\n".join([*commands, ""]))


def _run(argv: Sequence[str], stdin: str = "") -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, (argv, stdin, done.stdout, done.stderr)
    return done.stdout
