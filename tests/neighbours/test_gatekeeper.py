"""Tests of Gatekeeper: its webhooks reject and change objects, and its audit finds those that exist already."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neighbours import programs
from neighbours.conftest import Site
from support.endpoints import endpoint_slice, own_address
from support.server import free_port
from support.waiting import until

pytestmark = pytest.mark.timeout(900)

MODULE, VERSION = "github.com/open-policy-agent/gatekeeper/v3", "v3.23.1"
NAMESPACE = "gatekeeper-system"
POD = "gatekeeper-controller-manager-0"
"""Gatekeeper's status objects are owned by its pod, which must exist."""


@pytest.fixture(scope="module")
def demo(site: Site) -> Iterator[Path]:
    """Run Gatekeeper, and yield the directory of its demo."""
    binary = programs.installed(MODULE, VERSION)
    directory = programs.files(MODULE, VERSION)
    site.kubectl("apply", "-f", str(directory / "deploy/gatekeeper.yaml"))
    deployment = site.kubectl.json("get", "deployment/gatekeeper-controller-manager", f"--namespace={NAMESPACE}")
    template = deployment["spec"]["template"]
    metadata = {"name": POD, "namespace": NAMESPACE, "labels": template["metadata"]["labels"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    site.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    port = free_port()
    endpoint = endpoint_slice("gatekeeper-webhook-service", port, own_address(), "https-webhook-server")
    site.kubectl("apply", f"--namespace={NAMESPACE}", "-f", "-", stdin=json.dumps(endpoint))
    kubeconfig = programs.as_service_account(site.kubectl, site.directory, NAMESPACE, "gatekeeper-admin")
    certificates, cache = site.directory / "certs", site.directory / "audit"
    certificates.mkdir()
    cache.mkdir()
    argv = (
        f"--kubeconfig={kubeconfig}",
        f"--port={port}",
        f"--cert-dir={certificates}",
        f"--health-addr=127.0.0.1:{free_port()}",
        f"--prometheus-port={free_port()}",
        f"--exempt-namespace={NAMESPACE}",
        "--audit-interval=1",
        f"--api-cache-dir={cache}",
        "--default-wait-for-vapb-generation=0",
        "--shutdown-delay=0",
    )
    environment = {"POD_NAME": POD, "POD_NAMESPACE": NAMESPACE}
    with programs.program(site.directory / "gatekeeper.log", binary, *argv, **environment):
        mount_secret(site, "gatekeeper-webhook-server-cert", certificates)
        yield directory / "demo/basic"


def mount_secret(site: Site, name: str, directory: Path) -> None:
    """Write the keys of a Secret to files as a kubelet does, as soon as Gatekeeper has created the certificate."""
    data = until(lambda: site.kubectl.json("get", "secret", name, f"--namespace={NAMESPACE}").get("data"))
    for key, value in data.items():
        (directory / key).write_bytes(base64.b64decode(value))


def test_a_constraint_rejects_a_namespace_without_its_label(site: Site, demo: Path) -> None:
    site.kubectl("apply", "-f", str(demo / "templates/k8srequiredlabels_template.yaml"))
    constraint = demo / "constraints/all_ns_must_have_gatekeeper.yaml"
    until(lambda: site.kubectl.run("apply", "-f", str(constraint)).returncode == 0, description="the constraint's kind")
    rejected = until(
        lambda: site.kubectl.run("create", "-f", str(demo / "bad/bad_ns.yaml"), "--dry-run=server"),
        lambda done: done.returncode != 0,
        description="a rejection",
    )
    assert 'admission webhook "validation.gatekeeper.sh" denied the request: [ns-must-have-gk] ' in rejected.stderr
    assert 'you must provide labels: {"gatekeeper"}' in rejected.stderr
    site.kubectl("create", "-f", str(demo / "good/good_ns.yaml"))


def test_its_audit_reports_namespaces_that_exist_already(site: Site, demo: Path) -> None:
    """The status has one entry for each, written through the status subresource of a generated definition."""

    def violations() -> set[str]:
        status = site.kubectl.json("get", "k8srequiredlabels", "ns-must-have-gk").get("status", {})
        return {violation["name"] for violation in status.get("violations", ())}

    until(violations, lambda names: {"default", "kube-system"} <= names, timeout=120, description="violations")
    assert "good-ns" not in violations()


def test_a_mutator_adds_a_label(site: Site, demo: Path) -> None:
    mutator = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {
            "match": {"scope": "Namespaced", "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]},
            "location": "metadata.labels.owner",
            "parameters": {"assign": {"value": "admin"}},
        },
    }
    site.kubectl("apply", "-f", "-", stdin=json.dumps(mutator))

    def owner() -> Any:
        made = site.kubectl.json("create", "configmap", "c", "--dry-run=server")
        return made["metadata"].get("labels", {}).get("owner")

    until(owner, lambda label: label == "admin", description="the label")


def test_a_bad_template_is_rejected(site: Site, demo: Path) -> None:
    stderr = site.kubectl.fails("create", "-f", str(demo / "bad/bad_template.yaml"))
    assert 'admission webhook "validation.gatekeeper.sh" denied the request' in stderr


def test_a_template_in_cel_becomes_a_policy_of_the_server(site: Site, demo: Path) -> None:
    """Gatekeeper writes a ValidatingAdmissionPolicy and its binding, whose parameter is the constraint."""
    policies = demo.parent / "k8s-validating-admission-policy"
    site.kubectl("delete", "-f", str(demo / "templates/k8srequiredlabels_template.yaml"))
    until(
        lambda: site.kubectl.run("get", "crd", "k8srequiredlabels.constraints.gatekeeper.sh").returncode,
        lambda code: code == 1,
        description="the end of the constraint's kind",
    )
    site.kubectl("apply", "-f", str(policies / "k8srequiredlabels_template_usevap.yaml"))
    constraint = str(policies / "owner_must_be_provided.yaml")
    until(lambda: site.kubectl.run("apply", "-f", constraint).returncode == 0, description="the constraint's kind")
    rejected = until(
        lambda: site.kubectl.run("create", "namespace", "no-owner", "--dry-run=server").stderr,
        lambda stderr: "ValidatingAdmissionPolicy" in stderr,
        timeout=120,
        description="a rejection by the policy",
    )
    assert (
        "ValidatingAdmissionPolicy 'gatekeeper-k8srequiredlabels' with binding "
        "'gatekeeper-k8srequiredlabels-all-must-have-owner' denied request: "
        "missing required label, requires all of: owner"
    ) in rejected
    metadata = {"name": "owned", "labels": {"owner": "me.agilebank.demo"}}
    owned = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    site.kubectl("create", "--dry-run=server", "-f", "-", stdin=owned)
