"""Network namespaces in which proxies run: each is a node of the same name and with the same addresses.

This process has a network namespace of its own, too, in which the API server listens. Nothing of the machine's network
changes, and the kernel removes everything when the processes end.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from cluster.commands import run
from support.waiting import until

T = TypeVar("T")

SERVER: Final = "198.18.255.1"
"""The address of the API server."""
NODE: Final = ("10.10.0.5", "fd00:10::5")
"""The addresses of the node, which are on an interface of their own in each namespace."""
_CLONE_NEWNET: Final = 0x40000000


class Namespace:
    """A network namespace, which exists as long as its process.

    Args:
        number: the number of the namespace, from 1.
    """

    def __init__(self, number: int) -> None:
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdout=subprocess.DEVNULL)
        own = Path("/proc/self/ns/net").readlink()
        self._path = Path(f"/proc/{self.process.pid}/ns/net")
        until(lambda: self._path.readlink() != own, description="a network namespace")
        self._thread = ThreadPoolExecutor(1, initializer=self._enter)
        try:
            self._connect(number)
        except BaseException:
            self.close()
            raise

    def _enter(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)

    def _connect(self, number: int) -> None:
        outer, inner = f"198.18.{number}.1", f"198.18.{number}.2"
        _ip(f"link add node{number} type veth peer name eth0 netns {self.process.pid}")
        _ip(f"address add {outer}/30 dev node{number}", f"link set node{number} up")
        commands = (
            "link set lo up",
            f"address add {inner}/30 dev eth0",
            "link set eth0 up",
            f"route add default via {outer}",
            "link add node type bridge",
            f"address add {NODE[0]}/24 dev node",
            f"address add {NODE[1]}/64 dev node nodad",
            "link set node up",
        )
        self.within(lambda: _ip(*commands))

    def within(self, function: Callable[[], T]) -> T:
        """Call a function in a thread that is in the namespace. Processes that it starts are there, too."""
        return self._thread.submit(function).result()

    def run(self, *argv: str) -> str:
        """Run a command in the namespace, and return its output."""
        return self.within(lambda: run(*argv))

    def start(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process in the namespace, which appends its output to a log."""
        with log.open("ab") as out:
            return self.within(lambda: subprocess.Popen(argv, stdout=out, stderr=out))

    def close(self) -> None:
        """End the namespace."""
        self._thread.shutdown()
        self.process.kill()
        self.process.wait()


@contextmanager
def two() -> Iterator[tuple[Namespace, Namespace]]:
    """Yield two namespaces, each connected to that of this process, and end them."""
    _ip("link set lo up", f"address add {SERVER}/32 dev lo")
    first = Namespace(1)
    try:
        second = Namespace(2)
        try:
            yield first, second
        finally:
            second.close()
    finally:
        first.close()


def _ip(*commands: str) -> None:
    run("ip", "-batch", "-", stdin="\n".join([*commands, ""]))
