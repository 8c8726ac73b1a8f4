"""Tests of metrics-server behind the aggregator: `kubectl top`, and an autoscaler of the stock controller manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from neighbours import programs
from neighbours.aggregated import aggregated
from neighbours.autoscaling import (
    autoscaler_controller,
    create_autoscaler,
    create_deployment,
    rescalings,
    until_replicas,
)
from neighbours.conftest import Site
from neighbours.kubelet_metrics import Usage, kubelet_metrics
from support.nodes import nodes
from support.waiting import until
from support.wire import Client

pytestmark = pytest.mark.timeout(900)

VERSION = "v0.9.0"
FLAGS = (
    "--kubelet-preferred-address-types=InternalIP",
    "--kubelet-use-node-status-port",
    "--metric-resolution=10s",  # the least that it accepts
    "--kubelet-request-timeout=5s",
)


@pytest.fixture(scope="module")
def usage(site: Site) -> Iterator[Usage]:
    """Run metrics-server over one simulated node, and yield what the kubelet of the node reports."""
    binary = programs.installed("sigs.k8s.io/metrics-server/cmd/metrics-server", VERSION)
    manifests = programs.files("sigs.k8s.io/metrics-server", VERSION) / "manifests/base"
    with Client(site) as kubelet_client, Client(site) as pods_client:

        def pods() -> list[Any]:
            found = pods_client("GET", "/api/v1/pods?fieldSelector=spec.nodeName=node-a").json["items"]
            return [pod for pod in found if pod["status"]["phase"] == "Running"]

        usage = Usage(pods, cores=0.2)
        with (
            kubelet_metrics(site.directory, usage) as kubelet,
            nodes(kubelet_client, "node-a", kubelet_port=kubelet.port),
            autoscaler_controller(site),
        ):
            site.kubectl("apply", "-k", str(manifests))
            authority = f"--kubelet-certificate-authority={site.directory / 'kubelet-ca.crt'}"
            with aggregated(site, binary, "metrics-server", "kube-system", authority, *FLAGS):
                yield usage


def top(site: Site, *args: str) -> list[list[str]]:
    """Return the rows of `kubectl top`. The list is empty until metrics-server has collected metrics."""
    return [line.split() for line in site.kubectl.run("top", *args, "--no-headers").stdout.splitlines()]


def test_its_apiservice_becomes_available_and_is_discovered(site: Site, usage: Usage) -> None:
    name = "apiservice/v1beta1.metrics.k8s.io"
    site.kubectl("wait", name, "--for=condition=Available", "--timeout=60s", timeout=90)
    resources = site.kubectl("api-resources", "--api-group=metrics.k8s.io", "--no-headers", "-o", "name").split()
    assert resources == ["nodes.metrics.k8s.io", "pods.metrics.k8s.io"]


def test_kubectl_top_shows_nodes_and_an_autoscaler_scales_in_both_directions(site: Site, usage: Usage) -> None:
    create_deployment(site, "web", "node-a")
    target = {"type": "Utilization", "averageUtilization": 50}
    create_autoscaler(site, "web", {"type": "Resource", "resource": {"name": "cpu", "target": target}}, maximum=3)

    pods = until(lambda: top(site, "pods"), timeout=120, description="the usage of pods")
    assert {memory for *_, memory in pods} == {"64Mi"}
    assert {cpu for _, cpu, _ in pods} <= {"200m", "201m"}  # kubectl rounds up
    node = until(lambda: top(site, "nodes"), timeout=60, description="the usage of nodes")[0]
    assert (node[0], node[3]) == ("node-a", "640Mi")

    until_replicas(site, "web", 3)
    until(lambda: len(top(site, "pods", "--selector=app=web")), lambda count: count == 3, timeout=120)
    usage.cores = 0.001
    until_replicas(site, "web", 1)
    assert rescalings(site, "web") == [
        "New size: 3; reason: cpu resource utilization (percentage of request) above target",
        "New size: 1; reason: All metrics below target",
    ]


def test_a_user_without_rights_is_rejected_by_metrics_server(site: Site, usage: Usage) -> None:
    """It requests authorization of the server for the user that the aggregator's headers name."""
    with Client(site, "bob-token") as bob:
        answer = bob("GET", "/apis/metrics.k8s.io/v1beta1/nodes")
    assert answer.status == 403
    assert answer.json["message"] == (
        'nodes.metrics.k8s.io is forbidden: User "bob" cannot list resource "nodes" in API group "metrics.k8s.io" '
        "at the cluster scope"
    )
