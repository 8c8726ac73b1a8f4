"""Tests of the Prometheus operator: a Prometheus becomes a StatefulSet with a configuration, and reports its state."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from neighbours import programs
from neighbours.conftest import Site
from support.nodes import nodes
from support.server import free_port
from support.stock import controller_manager, scheduler
from support.waiting import until
from support.wire import Client

pytestmark = pytest.mark.timeout(900)

MODULE = "github.com/prometheus-operator/prometheus-operator"
CONTROLLERS = "--controllers=statefulset-controller,node-lifecycle-controller"
EXAMPLES = ("rbac/prometheus/prometheus-service-account.yaml", "user-guides/getting-started/example-app-service.yaml")


@pytest.fixture(scope="module", autouse=True)
def examples(site: Site) -> Iterator[Path]:
    """Run the operator with the stock controller of StatefulSets, and yield the directory of its examples."""
    binary = programs.built("prometheus-operator", f"{MODULE}/cmd/operator")
    directory = programs.files_of("prometheus-operator", MODULE)
    site.kubectl("apply", "--server-side", "-f", str(directory / "bundle.yaml"))
    kubeconfig = programs.as_service_account(site.kubectl, site.directory, "default", "prometheus-operator")
    log = site.directory / "prometheus-operator.log"
    address = f"--web.listen-address=127.0.0.1:{free_port()}"
    with (
        Client(site) as client,
        nodes(client, "node-a"),
        controller_manager(site.directory, site.kubeconfig, CONTROLLERS),
        scheduler(site.directory, site.kubeconfig),
        programs.program(log, binary, address, KUBECONFIG=str(kubeconfig)),
    ):
        for name in EXAMPLES:
            site.kubectl("apply", "-f", str(directory / "example" / name))
        yield directory / "example/user-guides/getting-started"


def scrape_jobs(site: Site) -> list[str]:
    """Return the names of the jobs in the configuration that the operator has written."""
    found = site.kubectl.run("get", "secret", "prometheus-prometheus", "-o", "json")
    if found.returncode != 0:
        return []
    packed = base64.b64decode(json.loads(found.stdout)["data"]["prometheus.yaml.gz"])
    return [job["job_name"] for job in yaml.safe_load(gzip.decompress(packed))["scrape_configs"]]


def test_a_prometheus_becomes_a_stateful_set_that_it_reports_as_available(site: Site, examples: Path) -> None:
    site.kubectl("apply", "-f", str(examples / "prometheus-service-monitor.yaml"))
    site.kubectl.exists("prometheus/prometheus")
    site.kubectl("wait", "prometheus/prometheus", "--for=condition=Available", "--timeout=120s", timeout=150)
    found = site.kubectl.json("get", "statefulset", "prometheus-prometheus")
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Prometheus"
    assert [container["name"] for container in found["spec"]["template"]["spec"]["containers"]] == [
        "prometheus",
        "config-reloader",
    ]
    assert site.kubectl("get", "pods", "-l", "prometheus=prometheus", "-o", "name") == "pod/prometheus-prometheus-0\n"
    header, row = site.kubectl("get", "prometheus", "prometheus").splitlines()
    assert header.split() == ["NAME", "VERSION", "DESIRED", "READY", "RECONCILED", "AVAILABLE", "AGE"]
    assert row.split()[1:4] == ["1", "True", "True"]  # version and replicas are unset


def test_a_service_monitor_is_written_to_the_configuration_and_removed_again(site: Site, examples: Path) -> None:
    monitor = str(examples / "example-app-service-monitor.yaml")
    site.kubectl("apply", "-f", monitor)
    until(lambda: scrape_jobs(site), lambda jobs: jobs == ["serviceMonitor/default/example-app/0"])
    site.kubectl("delete", "-f", monitor)
    until(lambda: scrape_jobs(site), lambda jobs: not jobs)


def test_the_scale_subresource_adds_a_shard(site: Site) -> None:
    site.kubectl("scale", "prometheus/prometheus", "--replicas=2")
    until(
        lambda: site.kubectl.run("get", "statefulset/prometheus-prometheus-shard-1", "-o=jsonpath={.status}").stdout,
        lambda status: status and json.loads(status).get("readyReplicas") == 1,
        description="the pod of the second shard",
    )
    scale = site.kubectl.json("get", "prometheus", "prometheus", "--subresource=scale")
    assert scale["spec"] == {"replicas": 2}
    until(
        lambda: site.kubectl.json("get", "prometheus", "prometheus", "--subresource=scale")["status"],
        lambda status: status["replicas"] == 2,
        description="two shards",
    )
    assert "operator.prometheus.io/name=prometheus" in scale["status"]["selector"]


def test_an_invalid_prometheus_is_rejected_by_the_definition(site: Site) -> None:
    spec = {"scrapeInterval": "soon", "replicas": "two"}
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "bad"}, "spec": spec}
    stderr = site.kubectl.fails("create", "--validate=false", "-f", "-", stdin=json.dumps(body))
    assert 'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"' in stderr
    assert 'spec.scrapeInterval: Invalid value: "soon": spec.scrapeInterval in body should match' in stderr


def test_deleting_a_prometheus_deletes_what_it_owns(site: Site) -> None:
    site.kubectl("delete", "prometheus", "prometheus")
    until(lambda: site.kubectl.run("get", "statefulset/prometheus-prometheus").returncode, lambda code: code == 1)
    until(lambda: site.kubectl.run("get", "secret/prometheus-prometheus").returncode, lambda code: code == 1)
