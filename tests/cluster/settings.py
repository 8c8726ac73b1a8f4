"""Names, addresses and paths of the cluster. A machine has one such cluster at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.configuration.version import KUBERNETES

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = KUBERNETES
FORMS: Final = {"one": "one process, SQLite", "four": "four services, etcd", "stock": "kube-apiserver, etcd"}
"""The forms of the API server by their keys. The last is for comparison."""
PROXIES: Final = ("stock", "tetrapod")
"""kube-proxy on the nodes, and `tetrapod proxy`."""

HOST: Final = "172.30.217.1"
"""The machine's own address in the network of the nodes. All servers outside the nodes listen on it."""
HOST_INTERFACE: Final = "tetrapod0"
CONTROL_GROUP: Final = "tetrapod-cluster"
PODS: Final = "10.244.0.0/16"
SERVICES: Final = "10.96.0.0/16"
FIRST_SERVICE: Final = "10.96.0.1"
"""The address of the API server for pods."""
DNS: Final = "10.96.0.10"
PORT: Final = 6443


@dataclass(frozen=True)
class Node:
    """A node: its network namespace, mount namespace, process namespace and control group are its own."""

    number: int

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def address(self) -> str:
        return f"172.30.217.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.number}.0/24"

    @property
    def control_group(self) -> str:
        """The parent of the control groups of its pods."""
        return f"{CONTROL_GROUP}/{self.name}"


NODES: Final = (Node(1), Node(2))


@dataclass(frozen=True)
class Paths:
    """The directories of the cluster below the cache directory."""

    cache: Path

    @classmethod
    def default(cls) -> Paths:
        """Return the paths below $TETRAPOD_CACHE, or ~/.cache/tetrapod."""
        return cls(Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod"))

    @property
    def programs(self) -> Path:
        """The directory of the programs that tools/cluster.sh builds."""
        return self.cache / f"cluster-{VERSION}"

    @property
    def stock_programs(self) -> Path:
        """The directory of the programs that tools/stock.sh builds."""
        return self.cache / f"stock-{VERSION}"

    @property
    def image_stores(self) -> Path:
        """The directories of containerd with the imported images, which stay when the cluster ends."""
        return self.programs / "image-stores"

    @property
    def state(self) -> Path:
        """The directory of one cluster. It exists only while the cluster runs."""
        return self.cache / "cluster"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator."""
        return self.state / "kubeconfig"

    @property
    def credentials(self) -> Path:
        return self.state / "credentials"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def processes(self) -> Path:
        return self.state / "processes"

    def node(self, node: Node) -> Path:
        """Return the directory of a node."""
        return self.state / node.name
