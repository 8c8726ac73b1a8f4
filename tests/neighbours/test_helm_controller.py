"""Tests of Flux's helm-controller: it installs, upgrades, corrects, rolls back and uninstalls a release of a chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from neighbours.conftest import Site
from neighbours.flux import NAMESPACE, Source, flux_controller, ready
from support.helm import helm
from support.waiting import until

pytestmark = pytest.mark.timeout(900)

CHART = {
    "app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0}",
    "app/values.yaml": "{color: red, port: 80}",
    "app/templates/objects.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: "{{ .Values.color }}"}
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {ports: [{port: {{ .Values.port }}}]}
""",
}


@pytest.fixture(scope="module")
def source(site: Site) -> Iterator[Source]:
    with flux_controller(site, "helm-controller") as source:
        source.publish(CHART)
        yield source


def release(source: Source, **values: Any) -> None:
    """Create or change the HelmRelease."""
    spec = {
        "interval": "1m",
        "chartRef": {"kind": "ExternalArtifact", "name": "source"},
        "driftDetection": {"mode": "enabled"},
        "upgrade": {"remediation": {"remediateLastFailure": True, "strategy": "rollback"}},
        "values": values,
    }
    source.apply(
        {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": {"name": "app"},
            "spec": spec,
        }
    )


def color(source: Source) -> str:
    found = source.flux.run("get", "configmap", "settings", "-o", "jsonpath={.data.color}")
    return found.stdout


def history(source: Source) -> list[str]:
    """Return the states of the revisions of the release, as Helm reports them."""
    revisions = json.loads(helm("history", "app", "-o", "json", kubectl=source.flux))
    return [revision["status"] for revision in revisions]


def test_a_helm_release_installs_a_chart_that_helm_lists(source: Source) -> None:
    release(source)
    source.flux("wait", "helmrelease/app", "--for=condition=Ready", "--timeout=60s", timeout=90)
    assert color(source) == "red"
    (listed,) = json.loads(helm("list", "-o", "json", kubectl=source.flux))
    assert (listed["name"], listed["namespace"], listed["status"]) == ("app", NAMESPACE, "deployed")


def test_changed_values_upgrade_the_release(source: Source) -> None:
    release(source, color="green")
    until(lambda: color(source), lambda found: found == "green")
    until(lambda: history(source), lambda states: states == ["superseded", "deployed"], description="revision 2")


def test_a_change_by_another_manager_is_undone(source: Source) -> None:
    """The controller finds the change by a dry run of a server-side apply."""
    source.flux("patch", "configmap", "settings", "--type=merge", "--patch", '{"data": {"color": "blue"}}')
    source.flux("annotate", "helmrelease", "app", "reconcile.fluxcd.io/requestedAt=now")
    until(lambda: color(source), lambda found: found == "green")


def test_a_rejected_upgrade_is_rolled_back(source: Source) -> None:
    release(source, color="black", port=0)
    until(lambda: history(source)[-2:], lambda states: states == ["failed", "deployed"], description="a rollback")
    assert color(source) == "green"
    until(
        lambda: ready(source.flux.json("get", "helmrelease", "app")),
        lambda found: found[0] == "False" and "rollback" in found[1],
        description="the condition Ready",
    )


def test_a_deleted_helm_release_is_uninstalled(source: Source) -> None:
    source.flux("delete", "helmrelease", "app", timeout=120)
    assert source.flux("get", "configmap,service,secret", "-o", "name").split() == ["configmap/kube-root-ca.crt"]
