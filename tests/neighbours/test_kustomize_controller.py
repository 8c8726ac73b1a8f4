"""Tests of Flux's kustomize-controller: it applies, corrects and prunes the objects of an artifact.

The artifact is a tarball that a web server of the test offers. An ExternalArtifact names it, which is Flux's kind for
sources that are not those of its source-controller.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import io
import json
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from neighbours import programs
from neighbours.conftest import Site
from support.server import free_port
from support.waiting import until

pytestmark = pytest.mark.timeout(900)

NAMESPACE = "flux-system"
MODULE = "github.com/fluxcd/kustomize-controller"
MANIFESTS = Path(__file__).parents[1] / "e2e/manifests"
SOURCE_MODULE, SOURCE_VERSION = "github.com/fluxcd/source-controller", "v1.9.6"


@dataclass(frozen=True)
class Source:
    """A directory that a web server offers, and the ExternalArtifact that names a tarball in it."""

    site: Site
    directory: Path
    url: str

    def publish(self, *objects: Any) -> str:
        """Pack the objects into a new tarball, and return the revision of the artifact."""
        content = yaml.safe_dump_all(objects).encode()
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo("objects.yaml")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
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
        flags = ("--subresource=status", "--type=merge", "--patch", patch)
        self.site.kubectl("patch", "externalartifact", "source", f"--namespace={NAMESPACE}", *flags)
        return revision


@pytest.fixture(scope="module")
def source(site: Site) -> Iterator[Source]:
    binary = programs.built("kustomize-controller", MODULE)
    config = programs.files_of("kustomize-controller", MODULE) / "config"
    source_crds = programs.files(SOURCE_MODULE, SOURCE_VERSION) / "config/crd/bases"
    site.kubectl("create", "namespace", NAMESPACE)
    for crds in (source_crds, config / "crd/bases"):
        site.kubectl("apply", "--server-side", "-f", str(crds))
    site.kubectl("create", "serviceaccount", "kustomize-controller", f"--namespace={NAMESPACE}")
    binding = ("--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:kustomize-controller")
    site.kubectl("create", "clusterrolebinding", "cluster-reconciler", *binding)
    kubeconfig = programs.as_service_account(site.kubectl, site.directory, NAMESPACE, "kustomize-controller")
    directory = site.directory / "artifacts"
    directory.mkdir()
    external = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact"}
    metadata = {"name": "source", "namespace": NAMESPACE}
    site.kubectl("apply", "-f", "-", stdin=json.dumps({**external, "metadata": metadata, "spec": {}}))
    flags = (
        f"--metrics-addr=127.0.0.1:{free_port()}",
        f"--health-addr=127.0.0.1:{free_port()}",
        "--feature-gates=ExternalArtifact=true",
    )
    log = site.directory / "kustomize-controller.log"
    environment = {"KUBECONFIG": str(kubeconfig), "RUNTIME_NAMESPACE": NAMESPACE}
    with _web_server(directory) as url, programs.program(log, binary, *flags, **environment):
        yield Source(site, directory, url)


@contextlib.contextmanager
def _web_server(directory: Path) -> Iterator[str]:
    """Offer the files of a directory on 127.0.0.1, and yield the URL."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def config_map(name: str, **data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def kustomization(site: Site) -> Any:
    return site.kubectl.json("get", "kustomization", "app", f"--namespace={NAMESPACE}")


def ready(obj: Any) -> tuple[str, str]:
    """Return the status and the message of the condition Ready."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next(((c["status"], c["message"]) for c in conditions if c["type"] == "Ready"), ("", ""))


def applied(site: Site, revision: str) -> Any:
    """Wait until the revision is applied, and return the Kustomization."""
    return until(
        lambda: kustomization(site),
        lambda obj: obj.get("status", {}).get("lastAppliedRevision") == revision and ready(obj)[0] == "True",
        description=revision,
    )


def test_a_kustomization_applies_a_definition_and_an_object_of_it(source: Source) -> None:
    definition = yaml.safe_load((MANIFESTS / "crd.yaml").read_text())
    widget = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "spec": {"size": 3}}
    widget["metadata"] = {"name": "w", "namespace": "default"}
    revision = source.publish(widget, definition, config_map("kept", a="1"), config_map("dropped", a="1"))
    spec = {
        "interval": "1m",
        "path": "./",
        "prune": True,
        "wait": True,
        "sourceRef": {"kind": "ExternalArtifact", "name": "source"},
    }
    body = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": spec}
    metadata = {"name": "app", "namespace": NAMESPACE}
    source.site.kubectl("apply", "-f", "-", stdin=json.dumps({**body, "metadata": metadata}))
    found = applied(source.site, revision)
    assert sorted(entry["id"] for entry in found["status"]["inventory"]["entries"]) == [
        "_widgets.e2e.example.com_apiextensions.k8s.io_CustomResourceDefinition",
        "default_dropped__ConfigMap",
        "default_kept__ConfigMap",
        "default_w_e2e.example.com_Widget",
    ]
    kept = source.site.kubectl.json("get", "configmap", "kept", "--show-managed-fields")
    assert [(f["manager"], f["operation"]) for f in kept["metadata"]["managedFields"]] == [
        ("kustomize-controller", "Apply")
    ]


def test_a_change_by_another_manager_is_undone(source: Source) -> None:
    kubectl = source.site.kubectl
    kubectl("patch", "configmap", "kept", "--type=merge", "--patch", '{"data": {"a": "2"}}')
    request = f"reconcile.fluxcd.io/requestedAt={time.time()}"
    kubectl("annotate", "kustomization", "app", request, f"--namespace={NAMESPACE}")
    until(lambda: kubectl.json("get", "configmap", "kept")["data"], lambda data: data == {"a": "1"})


def test_an_object_that_leaves_the_artifact_is_deleted(source: Source) -> None:
    applied(source.site, source.publish(config_map("kept", a="1")))
    remaining = source.site.kubectl("get", "configmaps,crds", "-o", "name").split()
    assert "configmap/kept" in remaining
    assert not [name for name in remaining if "dropped" in name or "widgets" in name]


def test_the_servers_reason_for_a_rejection_is_reported(source: Source) -> None:
    invalid = {**config_map("bad"), "kind": "Service", "spec": {"ports": [{"port": 0}]}}
    invalid.pop("data")
    source.publish(config_map("kept", a="1"), invalid)
    _, message = until(
        lambda: ready(kustomization(source.site)), lambda found: found[0] == "False", description="a failure"
    )
    assert "Service/default/bad dry-run failed" in message
    assert "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive" in message


def test_a_deleted_kustomization_deletes_its_objects(source: Source) -> None:
    source.site.kubectl("delete", "kustomization", "app", f"--namespace={NAMESPACE}")
    assert source.site.kubectl.run("get", "configmap", "kept").returncode == 1
