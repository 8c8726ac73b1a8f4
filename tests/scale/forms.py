"""The servers under load, by the names of `make scale`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench.targets import SERVICE_RANGE, Embedded, Four, OverEtcd, Real, Target
from support.server import free_port


class OneOverEtcd(OverEtcd):
    """`tetrapod up --etcd-servers`."""

    title = "One process over etcd"
    key = "etcd"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> float:
        begun = time.monotonic()
        flags = ["--data-dir", str(self._data / "data"), "--etcd-servers", self.etcd_url]
        flags += ["--bind-address", "127.0.0.1", "--secure-port", str(self._port), SERVICE_RANGE]
        self._spawn("tetrapod", self._command("up", *flags, "--token-auth-file", str(self._data / "tokens.csv")))
        self._wait_ready("tetrapod", self._port)
        return time.monotonic() - begun


FORMS: Final[Mapping[str, Callable[[Path], Target]]] = MappingProxyType(
    {"sqlite": Embedded, "etcd": OneOverEtcd, "four": Four, "kube-apiserver": Real}
)
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sqlite": "one process over SQLite",
        "etcd": "one process over etcd",
        "four": "four services over etcd",
        "kube-apiserver": "kube-apiserver",
    }
)
NODE_TOKEN: Final = "node-{number}-0123456789abcdef"


def with_nodes(target: Target, nodes: int) -> Target:
    """Give the server a token for the kubelet of each node, and return it."""
    target.users = [f'{token},{user},{user},"system:nodes"' for token, user in node_tokens(nodes)]
    return target


def node_tokens(nodes: int) -> list[tuple[str, str]]:
    """Return the token and the user name of each kubelet."""
    return [(NODE_TOKEN.format(number=number), f"system:node:node-{number}") for number in range(nodes)]
