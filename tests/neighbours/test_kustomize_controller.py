"""Tests of Flux's kustomize-controller: it applies, corrects and prunes the objects of an artifact."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from neighbours.conftest import Site
from neighbours.flux import Source, flux_controller, ready
from support.waiting import until

pytestmark = pytest.mark.timeout(900)

MANIFESTS = Path(__file__).parents[1] / "e2e/manifests"


@pytest.fixture(scope="module")
def source(site: Site) -> Iterator[Source]:
    with flux_controller(site, "kustomize-controller") as source:
        yield source


def publish(source: Source, *objects: Any) -> str:
    return source.publish({"objects.yaml": yaml.safe_dump_all(objects)})


def config_map(name: str, **data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def kustomization(source: Source) -> Any:
    return source.flux.json("get", "kustomization", "app")


def applied(source: Source, revision: str) -> Any:
    """Wait until the revision is applied, and return the Kustomization."""
    return until(
        lambda: kustomization(source),
        lambda obj: obj.get("status", {}).get("lastAppliedRevision") == revision and ready(obj)[0] == "True",
        description=revision,
    )


def test_a_kustomization_applies_a_definition_and_an_object_of_it(source: Source) -> None:
    definition = yaml.safe_load((MANIFESTS / "crd.yaml").read_text())
    widget = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "spec": {"size": 3}}
    widget["metadata"] = {"name": "w", "namespace": "default"}
    revision = publish(source, widget, definition, config_map("kept", a="1"), config_map("dropped", a="1"))
    spec = {
        "interval": "1m",
        "path": "./",
        "prune": True,
        "wait": True,
        "sourceRef": {"kind": "ExternalArtifact", "name": "source"},
    }
    body = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": spec}
    source.apply({**body, "metadata": {"name": "app"}})
    found = applied(source, revision)
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
    source.flux("annotate", "kustomization", "app", request)
    until(lambda: kubectl.json("get", "configmap", "kept")["data"], lambda data: data == {"a": "1"})


def test_an_object_that_leaves_the_artifact_is_deleted(source: Source) -> None:
    applied(source, publish(source, config_map("kept", a="1")))
    remaining = source.site.kubectl("get", "configmaps,crds", "-o", "name").split()
    assert "configmap/kept" in remaining
    assert not [name for name in remaining if "dropped" in name or "widgets" in name]


def test_the_servers_reason_for_a_rejection_is_reported(source: Source) -> None:
    invalid = {**config_map("bad"), "kind": "Service", "spec": {"ports": [{"port": 0}]}}
    invalid.pop("data")
    publish(source, config_map("kept", a="1"), invalid)
    _, message = until(lambda: ready(kustomization(source)), lambda found: found[0] == "False", description="a failure")
    assert "Service/default/bad dry-run failed" in message
    assert "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive" in message


def test_a_deleted_kustomization_deletes_its_objects(source: Source) -> None:
    source.flux("delete", "kustomization", "app")
    assert source.site.kubectl.run("get", "configmap", "kept").returncode == 1
