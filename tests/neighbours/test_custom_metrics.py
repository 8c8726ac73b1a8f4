"""Tests of custom-metrics-apiserver's test adapter behind the aggregator, and of autoscalers that use its metrics."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from neighbours import programs
from neighbours.aggregated import aggregated
from neighbours.autoscaling import autoscaler_controller, create_autoscaler, create_deployment, until_replicas
from neighbours.conftest import Site
from support.nodes import nodes
from support.waiting import until
from support.wire import Client

pytestmark = pytest.mark.timeout(900)

MODULE, VERSION = "sigs.k8s.io/custom-metrics-apiserver", "v1.37.0"
GROUPS = ("v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")
WRITE = "http://127.0.0.1:8080/write-metrics"
"""The port is fixed in the adapter."""


@pytest.fixture(scope="module", autouse=True)
def adapter(site: Site) -> Iterator[None]:
    binary = programs.installed(f"{MODULE}/test-adapter", VERSION)
    manifest = programs.files(MODULE, VERSION) / "test-adapter-deploy/testing-adapter.yaml"
    with Client(site) as client, nodes(client, "node-a"), autoscaler_controller(site):
        site.kubectl("apply", "-f", str(manifest))
        site.kubectl("delete", "deployment/custom-metrics-apiserver", "--namespace=custom-metrics")
        arguments = (site, binary, "custom-metrics-apiserver", "custom-metrics")
        with aggregated(*arguments, kubeconfig_flag="--lister-kubeconfig"):
            yield


def test_its_three_apiservices_become_available(site: Site) -> None:
    names = [f"apiservice/{group}" for group in GROUPS]
    site.kubectl("wait", *names, "--for=condition=Available", "--timeout=60s", timeout=90)


def test_an_autoscaler_follows_an_external_metric(site: Site) -> None:
    create_deployment(site, "queue", "node-a")
    external = {"metric": {"name": "other-external-metric"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    create_autoscaler(site, "queue", {"type": "External", "external": external}, maximum=9)
    until_replicas(site, "queue", 5)  # the adapter's value is 44


def test_an_autoscaler_follows_a_metric_of_an_object(site: Site) -> None:
    create_deployment(site, "web", "node-a")
    site.kubectl("create", "service", "clusterip", "web", "--tcp=80")
    described = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    metric = {"metric": {"name": "requests"}, "target": {"type": "Value", "value": "100"}, "describedObject": described}
    for value, replicas in (("300", 3), ("50", 1)):
        until(lambda value=value: written(value), description="the metric")  # type: ignore[misc]
        create_autoscaler(site, "web", {"type": "Object", "object": metric}, maximum=3)
        until_replicas(site, "web", replicas)


def written(value: str) -> bool:
    path = f"{WRITE}/namespaces/default/services/web/requests"
    request = urllib.request.Request(path, f'"{value}"'.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bool(answer.status == 200)
