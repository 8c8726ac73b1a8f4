"""A controller of Flux over an artifact that the test publishes.

A web server of the test offers the artifact. An ExternalArtifact names it, which is Flux's kind for sources that its
source-controller does not know.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neighbours import programs
from neighbours.conftest import Site
from support.kubectl import Kubectl
from support.server import free_port

NAMESPACE = "flux-system"
_SOURCE = ("github.com/fluxcd/source-controller", "v1.9.6")
"""The module that has the CRD of ExternalArtifacts."""


@dataclass(frozen=True)
class Source:
    """A directory that a web server offers, and the ExternalArtifact that names a tarball in it.

    Attributes:
        flux: kubectl in Flux's namespace.
    """

    site: Site
    flux: Kubectl
    directory: Path
    url: str

    def publish(self, files: Mapping[str, str]) -> str:
        """Pack files, text by path, into a new tarball, and return the revision of the artifact."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(text.encode()), 0o644
                archive.addfile(member, io.BytesIO(text.encode()))
        digest = hashlib.sha256(packed.getvalue()).hexdigest()
        (self.directory / f"{digest}.tar.gz").write_bytes(packed.getvalue())
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        revision = f"main@sha256:{digest}"
        artifact = {
            "digest": f"sha256:{digest}",
            "lastUpdateTime": now,
            "path": f"{digest}.tar.gz",
            "revision": revision,
            "size": len(packed.getvalue()),
            "url": f"{self.url}/{digest}.tar.gz",
        }
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": now}
        patch = json.dumps({"status": {"artifact": artifact, "conditions": [ready]}})
        self.flux("patch", "externalartifact", "source", "--subresource=status", "--type=merge", "--patch", patch)
        return revision

    def apply(self, obj: Any) -> None:
        self.flux("apply", "-f", "-", stdin=json.dumps(obj))


def ready(obj: Any) -> tuple[str, str]:
    """Return the status and the message of the condition Ready."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next(((c["status"], c["message"]) for c in conditions if c["type"] == "Ready"), ("", ""))


@contextmanager
def flux_controller(site: Site, name: str) -> Iterator[Source]:
    """Run a controller of Flux, such as `kustomize-controller`, with the rights of a cluster administrator."""
    binary = programs.built(name, f"github.com/fluxcd/{name}")
    config = programs.files_of(name, f"github.com/fluxcd/{name}") / "config"
    site.kubectl("create", "namespace", NAMESPACE)
    flux = Kubectl(site.directory, site.kubeconfig, NAMESPACE)
    for crds in (programs.files(*_SOURCE) / "config/crd/bases", config / "crd/bases"):
        flux("apply", "--server-side", "-f", str(crds))
    flux("create", "serviceaccount", name)
    flux("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:{name}")
    kubeconfig = programs.as_service_account(site.kubectl, site.directory, NAMESPACE, name)
    external = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact", "spec": {}}
    flux("apply", "-f", "-", stdin=json.dumps({**external, "metadata": {"name": "source"}}))
    flags = (
        f"--metrics-addr=127.0.0.1:{free_port()}",
        f"--health-addr=127.0.0.1:{free_port()}",
        "--feature-gates=ExternalArtifact=true",
    )
    directory = site.directory / "artifacts"
    directory.mkdir()
    environment = {"KUBECONFIG": str(kubeconfig), "RUNTIME_NAMESPACE": NAMESPACE}
    log = site.directory / f"{name}.log"
    with _web_server(directory) as url, programs.program(log, binary, *flags, **environment):
        yield Source(site, flux, directory, url)


@contextmanager
def _web_server(directory: Path) -> Iterator[str]:
    """Offer the files of a directory on 127.0.0.1, and yield the URL."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
