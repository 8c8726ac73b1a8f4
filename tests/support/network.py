"""The networks of a test's processes: all on loopback, or each in its own network namespace, so that connections can be
cut.

All namespaces are attached to one bridge, on which the test itself has an address. The bridge is in a namespace too,
where firewall rules of the host do not apply. A cut is silent, like a broken switch: packets are sent to a hardware
address that does not exist.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final, Protocol

_UNUSED_ADDRESS: Final = "02:ff:00:00:00:01"
_HOSTS: Final = Path("/etc/netns")
_numbers = itertools.count()


class Network(Protocol):
    def join(self, name: str) -> None: ...

    def address(self, name: str) -> str:
        """Return the IP address at which all other members reach `name`."""

    def host(self, name: str) -> str:
        """Return the host name of `name` for URLs whose certificate is verified."""

    def command_prefix(self, name: str) -> list[str]:
        """Return the prefix of a command line that runs a command at `name`."""

    def close(self) -> None: ...


class Loopback:
    def join(self, name: str) -> None:
        """Do nothing: all members share loopback."""

    def address(self, name: str) -> str:
        return "127.0.0.1"

    def host(self, name: str) -> str:
        return "127.0.0.1"

    def command_prefix(self, name: str) -> list[str]:
        return []

    def close(self) -> None:
        """Do nothing: loopback needs no cleanup."""


def _ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True)


@cache
def namespaces_allowed() -> bool:
    """Report whether this process may create network namespaces. It needs Linux, root and iproute2."""
    if os.geteuid() or shutil.which("ip") is None:
        return False
    network = None
    try:
        network = Namespaces()
        network.join("try")
        subprocess.run([*network.command_prefix("try"), "true"], check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        if network is not None:
            network.close()
    return True


class Namespaces:
    """A network namespace for each member.

    In each, the members' names resolve to their addresses, because certificates are for names.
    """

    def __init__(self) -> None:
        self._id = f"tp{os.getpid()}x{next(_numbers)}"
        self._subnet = f"10.{200 + os.getpid() // 250 % 50}.{(os.getpid() + next(_numbers)) % 250}"
        self._names: list[str] = []
        self._switch = f"{self._id}-switch"
        _ip("netns", "add", self._switch)
        try:
            _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "bridge", "up")
            self._outside = f"{self._id}"[-15:]
            _ip("link", "add", self._outside, "type", "veth", "peer", "name", "outside", "netns", self._switch)
            _ip("addr", "add", f"{self._subnet}.1/24", "dev", self._outside)
            _ip("link", "set", self._outside, "up")
            self._plug_in("outside")
        except BaseException:
            self.close()
            raise

    def _plug_in(self, port: str) -> None:
        _ip("-n", self._switch, "link", "set", port, "master", "bridge")
        _ip("-n", self._switch, "link", "set", port, "up")

    def namespace(self, name: str) -> str:
        return f"{self._id}-{name}"

    def join(self, name: str) -> None:
        space, port = self.namespace(name), f"port{len(self._names)}"
        self._names.append(name)
        _ip("netns", "add", space)
        _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self._switch)
        _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")
        _ip("-n", space, "link", "set", "lo", "up")
        self._plug_in(port)
        self._write_hosts()

    def _write_hosts(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{self.address(name)} {name}" for name in self._names)]
        for name in self._names:
            directory = _HOSTS / self.namespace(name)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / "hosts").write_text("\n".join(lines) + "\n")

    def address(self, name: str) -> str:
        return f"{self._subnet}.{self._names.index(name) + 2}"

    def host(self, name: str) -> str:
        return name

    def command_prefix(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace(name)]

    def disconnect(self, one: str, other: str) -> None:
        """Drop all packets between two members without notifying either."""
        for here, there in ((one, other), (other, one)):
            args = (
                "-n",
                self.namespace(here),
                "neigh",
                "replace",
                self.address(there),
                "lladdr",
                _UNUSED_ADDRESS,
                "dev",
                "eth0",
                "nud",
                "permanent",
            )
            _ip(*args)

    def reconnect(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            _ip("-n", self.namespace(here), "neigh", "del", self.address(there), "dev", "eth0")

    def close(self) -> None:
        for space in (*(self.namespace(name) for name in self._names), self._switch):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", space)
            shutil.rmtree(_HOSTS / space, ignore_errors=True)
        with contextlib.suppress(subprocess.CalledProcessError, AttributeError):
            _ip("link", "del", self._outside)
