"""The queries of kube-apiserver dashboards and alert rules find their series and labels.

The queries are those of kube-prometheus (kubernetes-mixin: dashboards/apiserver.libsonnet,
rules/kube_apiserver*.libsonnet, alerts/kube_apiserver.libsonnet, alerts/kubernetes_system.libsonnet) and of the SLO
dashboards of kubernetes/perf-tests.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from support.https_client import APPLY, HttpsClient
from support.server import Server

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

LOOKED_FOR = [
    # Availability and burn rates: KubeAPIErrorBudgetBurn and its recording rules.
    ("apiserver_request_sli_duration_seconds_count", {"verb", "subresource", "scope"}),
    ("apiserver_request_sli_duration_seconds_bucket", {"verb", "subresource", "scope", "le", "resource"}),
    ("apiserver_request_total", {"verb", "code", "resource", "subresource"}),
    # Latency.
    ("apiserver_request_duration_seconds_bucket", {"verb", "subresource", "scope", "le", "resource"}),
    ("apiserver_request_duration_seconds_sum", {"verb", "resource"}),
    # KubeAPITerminatedRequests.
    ("apiserver_request_terminations_total", set()),
    # KubeClientCertificateExpiration.
    ("apiserver_client_certificate_expiration_seconds_count", set()),
    ("apiserver_client_certificate_expiration_seconds_bucket", {"le"}),
    # KubeAggregatedAPIDown, KubeAggregatedAPIErrors.
    ("aggregator_unavailable_apiservice", {"name"}),
    ("aggregator_unavailable_apiservice_total", {"name", "reason"}),
    # KubeVersionMismatch, KubeClientErrors.
    ("kubernetes_build_info", {"git_version", "major", "minor", "platform"}),
    ("rest_client_requests_total", {"code", "method", "host"}),
    ("rest_client_request_duration_seconds_bucket", {"verb", "host", "le"}),
    # Other panels of the dashboard.
    ("workqueue_adds_total", {"name"}),
    ("workqueue_depth", {"name"}),
    ("workqueue_queue_duration_seconds_bucket", {"name", "le"}),
    ("process_resident_memory_bytes", set()),
    ("process_cpu_seconds_total", set()),
    ("process_open_fds", set()),
    ("process_start_time_seconds", set()),
    ("go_goroutines", set()),
    ("apiserver_current_inflight_requests", {"request_kind"}),
    ("apiserver_longrunning_requests", {"verb", "resource", "scope"}),
    ("apiserver_response_sizes_bucket", {"verb", "resource", "le"}),
    (
        "apiserver_admission_controller_admission_duration_seconds_bucket",
        {"name", "type", "operation", "rejected", "le"},
    ),
    ("apiserver_admission_step_admission_duration_seconds_bucket", {"type", "operation", "rejected", "le"}),
    ("apiserver_flowcontrol_dispatched_requests_total", {"priority_level", "flow_schema"}),
    ("apiserver_flowcontrol_current_executing_requests", {"priority_level", "flow_schema"}),
    ("apiserver_flowcontrol_request_wait_duration_seconds_bucket", {"priority_level", "flow_schema", "execute", "le"}),
    ("apiserver_flowcontrol_nominal_limit_seats", {"priority_level"}),
    ("authentication_attempts", {"result"}),
    ("authorization_attempts_total", {"result"}),
    ("etcd_request_duration_seconds_bucket", {"operation", "resource", "le"}),
    ("apiserver_resource_objects", {"group", "resource"}),
    ("apiserver_watch_events_total", {"group", "version", "resource"}),
    ("apiserver_requested_deprecated_apis", {"group", "version", "resource", "subresource", "removed_release"}),
    ("version_info", {"component", "binary", "emulation", "min_compat"}),
]
NOT_YET_HAPPENED = {"apiserver_request_terminations_total", "aggregator_unavailable_apiservice_total"}


@pytest.fixture(scope="module")
def watching(server: Server) -> Iterator[None]:
    """Apply the load while a watch is open."""
    request = urllib.request.Request(
        f"{server.url}{CONFIG_MAPS}?watch=true", headers={"authorization": "Bearer admin-token"}
    )
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60):
        yield


@pytest.fixture(scope="module")
def families(server: Server, watching: None) -> list[Metric]:
    client = HttpsClient(server.kubeconfig)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counted"}}
    for method, path, sent, content_type in (
        ("POST", CONFIG_MAPS, body, "application/json"),
        ("GET", f"{CONFIG_MAPS}/counted", None, "application/json"),
        ("GET", CONFIG_MAPS, None, "application/json"),
        ("PATCH", f"{CONFIG_MAPS}/counted?fieldManager=m", body, APPLY),
        ("PUT", f"{CONFIG_MAPS}/counted?dryRun=All", body, "application/json"),
        ("DELETE", f"{CONFIG_MAPS}/counted", None, "application/json"),
        ("GET", "/api/v1/namespaces/default/endpoints", None, "application/json"),
        ("GET", "/api/v1/nonsense", None, "application/json"),
        ("GET", "/apis/no.such.group/v1/things", None, "application/json"),
    ):
        client.call(method, path, sent, content_type)
    # requests of masters are exempt from priority and fairness
    ordinary = urllib.request.Request(f"{server.url}/version", headers={"authorization": "Bearer alice-token"})
    urllib.request.urlopen(ordinary, context=ssl._create_unverified_context(), timeout=60).close()
    return scraped(client)


def scraped(client: HttpsClient) -> list[Metric]:
    text = client.call("GET", "/metrics").body
    return list(text_string_to_metric_families(text))


def family_of(families: list[Metric], name: str) -> Metric:
    return next(family for family in families if family.name == name)


def labels_of(families: list[Metric], name: str) -> list[dict[str, str]]:
    return [sample.labels for family in families for sample in family.samples if sample.name in (name, f"{name}_total")]


@pytest.mark.parametrize(("name", "labels"), LOOKED_FOR, ids=[name for name, _ in LOOKED_FOR])
def test_series_of_dashboards_and_alerts_exist(families: list[Metric], name: str, labels: set[str]) -> None:
    found = labels_of(families, name)
    if name in NOT_YET_HAPPENED:
        assert family_of(families, name.removesuffix("_total"))
        return
    assert found, f"no sample of {name}"
    assert labels <= set(found[0]), found[0]


def test_requests_are_counted_as_upstream_counts_them(families: list[Metric]) -> None:
    counted = [
        labels for labels in labels_of(families, "apiserver_request_total") if labels["resource"] == "configmaps"
    ]
    seen = {(labels["verb"], labels["dry_run"], labels["scope"], labels["code"]) for labels in counted}
    assert seen >= {
        ("POST", "", "resource", "201"),
        ("GET", "", "resource", "200"),
        ("LIST", "", "namespace", "200"),
        ("APPLY", "", "resource", "200"),
        ("PUT", "All", "resource", "200"),
        ("DELETE", "", "resource", "200"),
    }
    assert {labels["component"] for labels in counted} == {"apiserver"} and {
        labels["version"] for labels in counted
    } == {"v1"}
    running = [labels for labels in labels_of(families, "apiserver_longrunning_requests") if labels["verb"] == "WATCH"]
    assert any(labels["resource"] == "configmaps" for labels in running)


def test_unserved_paths_create_no_series(families: list[Metric]) -> None:
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds_count"):
        assert not {"nonsense", "things"} & {labels["resource"] for labels in labels_of(families, name)}


def test_bounds_are_written_as_go_writes_them(families: list[Metric]) -> None:
    bounds = {labels["le"] for labels in labels_of(families, "apiserver_response_sizes_bucket")}
    assert bounds == {"1000", "10000", "100000", "1e+06", "1e+07", "1e+08", "1e+09", "+Inf"}
    assert {"0.1", "1", "5", "30"} <= {
        labels["le"] for labels in labels_of(families, "apiserver_request_sli_duration_seconds_bucket")
    }


def test_stability_is_reported_as_upstream_tells_it(families: list[Metric]) -> None:
    assert family_of(families, "apiserver_request").documentation.startswith("[STABLE] ")
    assert family_of(families, "workqueue_depth").documentation.startswith("[BETA] ")
    assert family_of(families, "apiserver_request_sli_duration_seconds").documentation.startswith("[ALPHA] ")
    assert not family_of(families, "process_open_fds").documentation.startswith("[")


def test_slis_of_health_checks(server: Server) -> None:
    client = HttpsClient(server.kubeconfig)
    client.call("GET", "/readyz")
    found = {f.name: f for f in text_string_to_metric_families(client.call("GET", "/metrics/slis").body)}
    samples = [sample.labels for sample in found["kubernetes_healthcheck"].samples]
    assert {"name": "ping", "type": "readyz"} in samples
    assert {"name": "ping", "type": "readyz", "status": "success"} in [
        s.labels for s in found["kubernetes_healthchecks"].samples
    ]


def test_counts_survive_a_client_that_leaves_its_watch(server: Server) -> None:
    client = HttpsClient(server.kubeconfig)
    path = "/api/v1/namespaces/default/secrets"

    def watches() -> float:
        family = family_of(scraped(client), "apiserver_longrunning_requests")
        return sum(
            s.value for s in family.samples if s.labels["resource"] == "secrets" and s.labels["scope"] == "namespace"
        )

    before = watches()
    request = urllib.request.Request(f"{server.url}{path}?watch=true", headers={"authorization": "Bearer admin-token"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60):
        assert watches() == before + 1
    client.until(lambda _: watches() == before, "GET", "/version")


def test_pages_are_counted_as_if_they_were_resources(server: Server) -> None:
    """Requests for /statusz and /flagz are counted by the requested version of the document."""
    client = HttpsClient(server.kubeconfig)
    for accept in ("text/plain", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", "text/html"):
        request = urllib.request.Request(
            f"{server.url}/flagz", headers={"authorization": "Bearer admin-token", "accept": accept}
        )
        try:
            urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60).close()
        except urllib.error.HTTPError as rejected:
            rejected.close()
    counted = [
        labels for labels in labels_of(scraped(client), "apiserver_request_total") if labels["resource"] == "flagz"
    ]
    assert {(labels["group"], labels["version"], labels["code"]) for labels in counted} == {
        ("", "", "200"),
        ("config.k8s.io", "v1beta1", "200"),
        ("", "", "406"),
    }
    assert {(labels["verb"], labels["scope"], labels["component"]) for labels in counted} == {("GET", "", "apiserver")}
