"""The images of the cluster, from Go programs and Debian packages. No registry is asked for one.

They have the names of the images that upstream's suites and manifests use, and do what those need of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cluster.archives import Image, Layer
from cluster.node_files import PAUSE
from cluster.settings import Paths

SUITE: Final = "registry.k8s.io/e2e-test-images"
AGNHOST: Final = f"{SUITE}/agnhost:2.66.1"
BUSYBOX: Final = f"{SUITE}/busybox:1.37.0-2"
COREDNS: Final = "registry.k8s.io/coredns/coredns:v1.15.0"
PROVISIONER: Final = "docker.io/rancher/local-path-provisioner:v0.0.30"
_PROGRAMS: Final = ("agnhost", "coredns", "pause", "local-path-provisioner")


class BasicImages:
    """The images that every cluster has.

    Args:
        paths: where their programs are (tools/cluster.sh) and the bases of their layers (tools/cluster_trees.sh).
    """

    name = "basic"
    in_registry = False

    def __init__(self, paths: Paths) -> None:
        self.programs = paths.programs
        self.debian = paths.programs / "debian.tar"
        self.busybox = paths.programs / "busybox.tar"

    def inputs(self) -> list[Path]:
        """Return the files on which the images depend."""
        own = [Path(__file__), Path(__file__).with_name("archives.py")]
        return [*own, self.debian, self.busybox, *(self.programs / name for name in _PROGRAMS)]

    def images(self) -> list[Image]:
        """Return the images."""
        return [
            Image((PAUSE,), (self._pause,), {"Entrypoint": ["/pause"], "User": "65535:65535"}),
            Image((COREDNS,), (self._coredns,), {"Entrypoint": ["/coredns"]}),
            Image((PROVISIONER,), (self._provisioner,), {"Entrypoint": ["/local-path-provisioner"]}),
            Image((BUSYBOX,), (self.busybox,), {"Cmd": ["sh"]}),
            Image((AGNHOST,), (self.debian, self.agnhost), {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}),
        ]

    def _pause(self, layer: Layer) -> None:
        layer.file("pause", self.programs / "pause")

    def _coredns(self, layer: Layer) -> None:
        layer.file("coredns", self.programs / "coredns")

    def _provisioner(self, layer: Layer) -> None:
        layer.file("local-path-provisioner", self.programs / "local-path-provisioner")

    def agnhost(self, layer: Layer) -> None:
        """Fill the layer with upstream's program of many commands, and the files that some of them read."""
        layer.file("agnhost", self.programs / "agnhost")
        layer.link("agnhost-2", "agnhost")
        layer.file("coredns", self.programs / "coredns")
        layer.directory("uploads", 0o777)
        for name in ("localhost.crt", "localhost.key"):
            layer.file(name, self.programs / "files" / name, 0o644)
