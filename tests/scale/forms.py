"""The servers under load, by the names of `make scale`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench.processes import children
from bench.targets import Embedded, Four, OverEtcd, Real, Target
from scale.results import KUBE_APISERVER
from support.server import free_port


class OneOverEtcd(OverEtcd):
    """`tetrapod up --etcd-servers`."""

    title = "One process over etcd"
    key = "etcd"
    _further: tuple[str, ...] = ()

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> float:
        return self._up(self._port, "--etcd-servers", self.etcd_url, *self._further)


class TwoWorkers(OneOverEtcd):
    """`tetrapod up --workers=2 --etcd-servers`."""

    title = "Two workers over etcd"
    key = "workers"
    _further = ("--workers=2",)

    @property
    def pids(self) -> list[int]:
        supervisors = super().pids
        return [*supervisors, *(child for pid in supervisors for child in children(pid))]


FORMS: Final[Mapping[str, Callable[[Path], Target]]] = MappingProxyType(
    {"sqlite": Embedded, "etcd": OneOverEtcd, "workers": TwoWorkers, "four": Four, KUBE_APISERVER: Real}
)
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sqlite": "one process over SQLite",
        "etcd": "one process over etcd",
        "workers": "two workers over etcd",
        "four": "four services over etcd",
        KUBE_APISERVER: "kube-apiserver",
    }
)
NODE_TOKEN: Final = "node-{number}-0123456789abcdef"


def node_tokens(nodes: int) -> list[tuple[str, str]]:
    """Return the token and the user name of each kubelet."""
    return [(NODE_TOKEN.format(number=number), f"system:node:node-{number}") for number in range(nodes)]
