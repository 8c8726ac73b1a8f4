"""The images that the specs of the conformance suite run, beside those of every cluster.

They are made from Go programs of the same modules and from Debian packages. They have the names of upstream's images,
and the commands and files that the specs use. Upstream: test/utils/image/manifest.go, test/images
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cluster.archives import Image, Layer
from cluster.images import SUITE, BasicImages
from cluster.settings import Paths

_NGINX: Final = b"""daemon off;
worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
  include /etc/nginx/mime.types;
  access_log /dev/stdout;
  server { listen 80 default_server; root /usr/share/nginx/html; index index.html; }
}
"""
_PAGE: Final = b"<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head></html>\n"
_PROGRAMS: Final = ("nonewprivs", "regression-issue-74839")


class ConformanceImages(BasicImages):
    """The images of every cluster and those of the suite.

    Args:
        paths: where the programs are.
        etcd: the etcd program.
    """

    name = "conformance"
    in_registry = True

    def __init__(self, paths: Paths, etcd: Path) -> None:
        super().__init__(paths)
        self._etcd = etcd
        self._sample = paths.stock_programs / "sample-apiserver"

    def inputs(self) -> list[Path]:
        programs = [self.programs / name for name in _PROGRAMS]
        return [*super().inputs(), Path(__file__), self._etcd, self._sample, *programs]

    def images(self) -> list[Image]:
        debian, busybox = self.debian, self.busybox
        pet = {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]}
        return [
            *super().images(),
            Image((f"{SUITE}/agnhost:2.55",), (debian, self.agnhost), {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}),
            Image((f"{SUITE}/nonroot:1.5",), (busybox,), {"Cmd": ["sh"], "User": "1234"}),
            Image((f"{SUITE}/ipc-utils:1.4",), (debian,), {"Cmd": ["sh"]}),
            Image((f"{SUITE}/glibc-dns-testing:2.1.1",), (debian,), {"Cmd": ["bash"]}),
            Image(("registry.k8s.io/build-image/distroless-iptables:v0.9.7",), (debian,), {"Cmd": ["sh"]}),
            Image((f"{SUITE}/perl:5.26",), (debian,), {"Cmd": ["perl"]}),
            Image((f"{SUITE}/nginx:1.27.0-2",), (debian, self._nginx), {"Cmd": ["nginx"]}),
            Image((f"{SUITE}/nginx:1.28.0-2",), (debian, self._nginx), {"Cmd": ["nginx"], "Labels": {"new": "1"}}),
            Image((f"{SUITE}/nautilus:1.8",), (debian, self.agnhost, self._nautilus), pet),
            Image((f"{SUITE}/kitten:1.8",), (debian, self.agnhost, self._kitten), pet),
            Image((f"{SUITE}/nonewprivs:1.4",), (busybox, self._no_new_privileges), {"Cmd": ["/usr/local/bin/nnp"]}),
            Image(
                (f"{SUITE}/regression-issue-74839:1.5",),
                (busybox, self._regression),
                {"Entrypoint": ["/regression-issue-74839"]},
            ),
            Image((f"{SUITE}/sample-apiserver:1.29.2",), (debian, self._server), {"Entrypoint": ["/sample-apiserver"]}),
            Image(("registry.k8s.io/etcd:3.7.0-0",), (debian, self._store), {"Cmd": ["etcd"]}),
        ]

    def _pet(self, layer: Layer, name: str) -> None:
        for file in (f"{name}.jpg", "data.json"):
            layer.file(file, self.programs / "files" / name / file, 0o644)

    def _nautilus(self, layer: Layer) -> None:
        self._pet(layer, "nautilus")

    def _kitten(self, layer: Layer) -> None:
        """Fill the layer. Upstream's image is based on Alpine Linux, and a spec reads that in a volume of the image."""
        self._pet(layer, "kitten")
        layer.content("etc/os-release", b'NAME="Alpine Linux"\nID=alpine\n')

    def _nginx(self, layer: Layer) -> None:
        layer.content("etc/nginx/nginx.conf", _NGINX)
        for name in ("index.html", "50x.html"):
            layer.content(f"usr/share/nginx/html/{name}", _PAGE)

    def _no_new_privileges(self, layer: Layer) -> None:
        layer.file("usr/local/bin/nnp", self.programs / "nonewprivs", 0o4755)

    def _regression(self, layer: Layer) -> None:
        layer.file("regression-issue-74839", self.programs / "regression-issue-74839")

    def _server(self, layer: Layer) -> None:
        layer.file("sample-apiserver", self._sample)

    def _store(self, layer: Layer) -> None:
        layer.file("usr/local/bin/etcd", self._etcd)
        layer.link("etcd", "usr/local/bin/etcd")
