"""Network namespaces in which proxies run: each is a node of the same name and with the same addresses.

This process has a network namespace of its own, too, in which the API server listens. Nothing of the machine's network
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from support.network_namespace import Namespace, ip

SERVER: Final = "198.18.255.1"
"""The address of the API server."""
NODE: Final = ("10.10.0.5", "fd00:10::5")
"""The addresses of the node, which are on an interface of their own in each namespace."""


@contextmanager
def two() -> Iterator[tuple[Namespace, Namespace]]:
    """Yield two namespaces, each connected to that of this process, and end them."""
    ip("link set lo up", f"address add {SERVER}/32 dev lo")
    with ExitStack() as stack:
        first, second = (stack.enter_context(Namespace()) for _ in range(2))
        _connect(first, 1)
        _connect(second, 2)
        yield first, second


def _connect(namespace: Namespace, number: int) -> None:
    outer, inner = f"198.18.{number}.1", f"198.18.{number}.2"
    ip(
        f"link add node{number} type veth peer name eth0 netns {namespace.process.pid}",
        f"address add {outer}/30 dev node{number}",
        f"link set node{number} up",
    )
    namespace.ip(
        "link set lo up",
        f"address add {inner}/30 dev eth0",
        "link set eth0 up",
        f"route add default via {outer}",
        "link add node type bridge",
        f"address add {NODE[0]}/24 dev node",
        f"address add {NODE[1]}/64 dev node nodad",
        "link set node up",
    )
