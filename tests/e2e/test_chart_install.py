"""Tests of the chart on our own server, which accepts all its objects: install, upgrade, rollback and uninstall."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from e2e.conftest import Target
from support.definitions import definition, version
from support.helm import CHART, Object, helm, pod_templates, render, run, settings
from support.hooks import running_jobs_and_pods, write_account_directory
from support.kubectl import Kubectl, wait_established
from support.library import LIBRARY_EXAMPLE
from support.server import command, environment

EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
OF_OTHERS = {
    ("cert-manager.io", "v1"): ("Issuer", "Certificate"),
    ("monitoring.coreos.com", "v1"): ("ServiceMonitor", "PrometheusRule"),
    ("gateway.networking.k8s.io", "v1alpha2"): ("TLSRoute",),
}
"""Kinds from third-party CRDs that the chart uses."""


def of_others(group: str, version_name: str, kind: str) -> Object:
    found = definition(group, kind, version(version_name))
    found["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, of a test"}
    return found


@pytest.fixture(scope="module")
def kinds_of_others(admin: Kubectl) -> None:
    found = [of_others(*key, kind) for key, kinds in OF_OTHERS.items() for kind in kinds]
    admin("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    for crd in found:
        wait_established(admin, crd["metadata"]["name"])


@pytest.fixture
def job(server: Target, kubectl: Kubectl, tmp_path: Path) -> Callable[[str, Object], int]:
    """Run the certificate job's pod as a process with its own arguments and service account, which tests the role of
    that account.
    """

    def run_job(name: str, spec: Object) -> int:
        account = tmp_path / name
        write_account_directory(kubectl, spec["serviceAccountName"], account, server.ca.read_bytes())
        (container,) = spec["containers"]
        args = [arg for arg in container["args"] if not arg.startswith("--out=")]
        url = urlsplit(server.url)
        where = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}
        argv = command(*args, f"--out={account / 'out'}", f"--service-account={account}")
        done = subprocess.run(
            argv, env={**environment(), **where}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.returncode

    return run_job


@pytest.mark.usefixtures("kinds_of_others")
@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_the_server_accepts_every_object(kubectl: Kubectl, values: Path | None) -> None:
    objects = render(*(["--values", str(values)] if values else []), namespace=kubectl.namespace)
    accounts = {template["spec"]["serviceAccountName"] for template in pod_templates(objects).values()}
    for account in accounts:
        kubectl("create", "serviceaccount", account)  # pods need it, and a dry run does not create it
    rest = [found for found in objects if found["kind"] != "ServiceAccount"]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": rest})
    output = kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=listed)
    assert output.count("created (server dry run)") == len(rest)


def test_the_server_accepts_the_manifests_of_the_external_api_server(kubectl: Kubectl) -> None:
    output = kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(LIBRARY_EXAMPLE / "hosted.yaml"))
    assert output.count("created (server dry run)") == 2


def test_a_release_is_installed_upgraded_rolled_back_and_reinstalled_with_its_data(
    kubectl: Kubectl, job: Callable[[str, Object], int]
) -> None:
    def state(kind: str) -> dict[str, Object]:
        return {
            found["metadata"]["name"]: found
            for found in kubectl.json("get", kind, "-l", "app.kubernetes.io/name=tetrapod")["items"]
        }

    def selectors() -> dict[str, Object]:
        return {name: found["spec"]["selector"] for name, found in state("deployments,statefulsets").items()}

    with running_jobs_and_pods(kubectl, job) as ran:
        output = helm("install", "rel", str(CHART), kubectl=kubectl)
        assert "a Kubernetes API of its own" in output and "rel-tetrapod-admin" in output
        assert ran == ["rel-tetrapod-certs-init"]
        first, secrets = selectors(), state("secrets")
        assert {
            f"rel-tetrapod-{name}"
            for name in ("aggregator", "core", "extensions", "auth", "etcd", "redis", "admin", "ca")
        } <= set(secrets)
        # No object of the hook may remain, because its service account could write Secrets.
        assert [name for kind in ("role", "serviceaccount", "job") for name in state(kind) if "init" in name] == []

        values = settings(core__replicaCount=3, aggregator__hosts=["api.example.com"], defaults__logVerbosity=2)
        helm("upgrade", "rel", str(CHART), *values, kubectl=kubectl)
        assert state("deployments")["rel-tetrapod-core"]["spec"]["replicas"] == 3
        after = state("secrets")
        changed = {name for name in secrets if after[name].get("data") != secrets[name].get("data")}
        assert changed == {"rel-tetrapod-aggregator", "rel-tetrapod-ca"}  # another name in its certificate
        assert selectors() == first

        rejected = run("upgrade", "rel", str(CHART), *settings(etcd__replicaCount=3), kubectl=kubectl)
        assert rejected.returncode != 0 and "members are added and removed one by one" in rejected.stderr

        helm("rollback", "rel", "1", kubectl=kubectl)
        assert state("deployments")["rel-tetrapod-core"]["spec"]["replicas"] == 2
        assert selectors() == first
        assert state("secrets")["rel-tetrapod-redis"]["data"] == secrets["rel-tetrapod-redis"]["data"]

    helm("uninstall", "rel", kubectl=kubectl)
    left = kubectl(
        "get",
        "deployments,statefulsets,services,cronjobs,jobs,networkpolicies,poddisruptionbudgets,roles",
        "-o",
        "name",
    )
    assert left == ""

    with running_jobs_and_pods(kubectl, job):
        helm("install", "rel", str(CHART), kubectl=kubectl)
    again = state("secrets")["rel-tetrapod-ca"]["data"]
    assert all(again[file] == data for file, data in secrets["rel-tetrapod-ca"]["data"].items() if "ca." in file)


@pytest.mark.usefixtures("kinds_of_others")
def test_notes_describe_how_to_connect(kubectl: Kubectl) -> None:
    for values in EXAMPLES:
        output = helm("install", "rel", str(CHART), "--dry-run", "--no-hooks", "--values", str(values), kubectl=kubectl)
        notes = output.partition("NOTES:")[2]
        assert "kubeconfig" in notes and "<no value>" not in notes and "%!" not in notes
