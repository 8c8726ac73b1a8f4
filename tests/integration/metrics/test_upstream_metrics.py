"""After the same load, Tetrapod publishes the same metrics as kube-apiserver: names, types, help texts, labels,
buckets.

`upstream.json` was recorded by tools/record_metrics.py from kube-apiserver 1.37.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from support.metric_load import ALICE, SPACE, Family, TokenClient, families, metric_load
from support.server import Server

_HERE: Final = Path(__file__).parent
UPSTREAM: Final[Mapping[str, Mapping[str, Family]]] = json.loads((_HERE / "upstream.json").read_text())
ABSENT: Final = {
    # OpenAPI documents are generated per kind on request; nothing is regenerated.
    "apiextensions_openapi_v2_regeneration_count",
    "apiextensions_openapi_v3_regeneration_count",
    # There is one limit for reads and writes together; apiserver_current_{inflight,inqueue}_requests separates them.
    "apiserver_flowcontrol_read_vs_write_current_requests",
    # Validation has one implementation, so there is nothing to compare it with.
    "apiserver_validation_declarative_validation_mismatch_total",
    "apiserver_validation_declarative_validation_panic_total",
    "apiserver_validation_declarative_validation_parity_discrepancies_total",
    "apiserver_validation_duplicate_validation_error_total",
    # Informers pass events on at once, without a queue.
    "informer_queued_items",
    # Go's HTTP client.
    "rest_client_exec_plugin_certificate_rotation_age",
    "rest_client_exec_plugin_ttl_seconds",
    "rest_client_transport_cache_entries",
    "rest_client_transport_cert_rotation_gc_calls_total",
    "rest_client_transport_create_calls_total",
}
_PRESENT: Final = [(path, name) for path, found in UPSTREAM.items() for name in found if name not in ABSENT]


@pytest.fixture(scope="module")
def ask(server: Server) -> Iterator[TokenClient]:
    with metric_load(server.url) as found:
        yield found


@pytest.fixture(scope="module")
def text(ask: TokenClient) -> str:
    return ask("GET", "/metrics")[1].decode()


@pytest.fixture(scope="module")
def ours(ask: TokenClient, text: str) -> Mapping[str, Mapping[str, Family]]:
    return {"/metrics": families(text), "/metrics/slis": families(ask("GET", "/metrics/slis")[1].decode())}


def test_every_upstream_metric_exists_except_the_listed_ones(ours: Mapping[str, Mapping[str, Family]]) -> None:
    missing = {name for path, found in UPSTREAM.items() for name in found if name not in ours[path]}
    assert missing == ABSENT


def test_the_readme_has_the_number_of_absent_metrics() -> None:
    text = f"{len(ABSENT)} of upstream's {len(UPSTREAM['/metrics'])} metric families are missing"
    assert text in (_HERE.parents[2] / "README.md").read_text()


@pytest.mark.parametrize(("path", "name"), _PRESENT, ids=[name for _, name in _PRESENT])
def test_a_metric_has_upstreams_type_text_labels_and_buckets(
    ours: Mapping[str, Mapping[str, Family]], path: str, name: str
) -> None:
    if name in ABSENT:
        pytest.fail("it is absent")
    mine, theirs = ours[path][name], UPSTREAM[path][name]
    assert (mine["type"], mine["help"]) == (theirs["type"], theirs["help"])
    if mine["labels"] or mine["buckets"]:  # other families need events that this test does not cause
        assert (mine["labels"], mine["buckets"]) == (theirs["labels"], theirs["buckets"])


@pytest.mark.parametrize(
    "sample",
    [
        'apiserver_watch_cache_events_received_total{group="",resource="configmaps"}',
        'apiserver_watch_cache_events_dispatched_total{group="",resource="configmaps"}',
        'apiserver_watch_cache_initializations_total{group="",resource="configmaps"} 1',
        'watch_cache_capacity{group="",resource="pods"} 100',
        'apiserver_init_events_total{group="",resource="configmaps"}',
        'apiserver_watch_cache_consistent_read_total{fallback="false",group="",resource="configmaps",success="true"}',
        'apiserver_storage_list_total{group="",index="",resource="configmaps",storage="watchcache"}',
        'apiserver_storage_list_total{group="",index="f:spec.nodeName",resource="pods",storage="watchcache"} 1',
        'apiserver_storage_size_bytes{storage_cluster_id="etcd-0"}',
        'apiserver_watch_list_duration_seconds_count{group="",resource="configmaps",scope="namespace",version="v1"} 1',
        'apiserver_watch_events_dispatch_duration_seconds_count{group="",resource="configmaps",stage="total"}',
        'apiserver_watch_events_sizes_count{group="",resource="configmaps",version="v1"}',
        (
            'apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",'
            'policy="metrics-load"'
        ),
        (
            'apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="metrics-load",'
            'policy_binding="metrics-load"}'
        ),
        'apiserver_admission_webhook_fail_open_count{name="hook.load.example.com",type="admit"}',
        'kube_apiserver_clusterip_allocator_allocated_ips{cidr="10.0.0.0/24"} 2',
        'kube_apiserver_clusterip_allocator_allocation_total{cidr="10.0.0.0/24",scope="dynamic"}',
        "kube_apiserver_nodeport_allocator_allocated_ports 1",
        'kube_apiserver_nodeport_allocator_allocation_errors_total{scope="static"} 1',
        'kube_apiserver_pod_logs_insecure_backend_total{usage="enforce_tls"} 1',
        (
            'pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="restricted",'
            'policy_version="latest"'
        ),
        'apiserver_impersonation_attempts_total{decision="allowed",mode="user-info"}',
        'apiserver_impersonation_attempts_total{decision="denied",mode=""}',
        'apiserver_request_filter_duration_seconds_count{filter="authorization"}',
        'kubernetes_feature_enabled{name="WatchListCompression",stage="BETA"} 1',
        'kubernetes_feature_enabled{name="CRDValidationRatcheting",stage=""} 1',
        'apiserver_flowcontrol_demand_seats_count{priority_level="exempt"}',
        'apiserver_flowcontrol_watch_count_samples_count{flow_schema="exempt",priority_level="exempt"}',
        (
            'apiserver_admission_step_admission_duration_seconds_summary{operation="CREATE",quantile="0.99",'
            'rejected="false",type="admit"}'
        ),
        "apiserver_cel_compilation_duration_seconds_count",
        "apiserver_cel_evaluation_duration_seconds_count",
        "apiserver_tls_handshake_errors_total 1",
    ],
)
def test_every_operation_of_the_fixture_is_counted(text: str, sample: str) -> None:
    wanted, _, value = sample.partition("} ") if "}" in sample else sample.partition(" ")
    labels = set(wanted.partition("{")[2].rstrip("}").split(",")) - {""}
    found = [
        line
        for line in text.splitlines()
        if line.startswith(wanted.partition("{")[0]) and all(label in line for label in labels)
    ]
    assert found, f"no sample like {sample}"
    assert not value or float(found[0].rpartition(" ")[2]) == float(value), found
    assert float(found[0].rpartition(" ")[2]) > 0, found


def test_counts_begin_again_when_that_is_asked_for(server: Server, text: str) -> None:
    ask = TokenClient(server.url)
    assert ask("DELETE", "/metrics")[0] == 200
    series = 'apiserver_watch_cache_events_received_total{group="",resource="configmaps"} '
    before = next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(series))
    ask("POST", f"/api/v1/namespaces/{SPACE}/configmaps", {"metadata": {"name": "anew"}})
    after = next(
        float(line.rpartition(" ")[2])
        for line in ask("GET", "/metrics")[1].decode().splitlines()
        if line.startswith(series)
    )
    assert after < before


def test_a_reset_removes_gauges_until_they_are_set_again(server: Server) -> None:
    ask = TokenClient(server.url)

    def deprecated() -> list[str]:
        lines = ask("GET", "/metrics")[1].decode().splitlines()
        return [line for line in lines if line.startswith("apiserver_requested_deprecated_apis{")]

    labels = 'group="",removed_release="",resource="componentstatuses",subresource="",version="v1"'
    one = f"apiserver_requested_deprecated_apis{{{labels}}} 1"
    ask("GET", "/api/v1/componentstatuses")
    assert deprecated() == [one]
    ask("DELETE", "/metrics")
    assert deprecated() == []
    ask("GET", "/api/v1/componentstatuses")
    assert deprecated() == [one]


def test_requests_that_are_rejected_by_the_filters_are_not_counted(server: Server) -> None:
    ask = TokenClient(server.url)
    ask("DELETE", "/metrics")
    for path in ("/readyz", "/version", "/metrics", "/api", "/openapi/v2", "/api/v1/pods"):
        assert ask("GET", path, token="wrong")[0] == 401
        assert ask("GET", path, impersonate_user="nobody", token=ALICE)[0] == 403
    counted = [
        line
        for line in ask("GET", "/metrics")[1].decode().splitlines()
        if line.startswith(('apiserver_request_total{code="401"', 'apiserver_request_total{code="403"'))
    ]
    assert counted == []


def test_the_size_of_bodies_has_upstreams_verbs(server: Server) -> None:
    ask = TokenClient(server.url)
    assert (
        ask("DELETE", "/api/v1/namespaces/default/podtemplates", {"kind": "DeleteOptions", "apiVersion": "v1"})[0]
        == 200
    )
    name = "apiserver_request_body_size_bytes_count"
    text = ask("GET", "/metrics")[1].decode()
    assert f'{name}{{group="",resource="podtemplates",verb="delete_collection"}} 1' in text


def test_only_the_paths_that_upstream_counts_are_counted(server: Server) -> None:
    ask = TokenClient(server.url)
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    paths = ("/api", "/apis", "/version", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/livez")
    ask("DELETE", "/metrics")
    for path in paths:
        assert ask("GET", path)[0] == 200
    counted = _counted_paths(ask)
    assert counted == {"openapi/v3": "1", "openapi/v3/": "1", "/livez": "1"}
    for path in ("/api", "/apis"):
        assert ask("GET", path, accept=aggregated)[0] == 200
    assert _counted_paths(ask) == counted | {"api": "1", "apis": "1"}


def _counted_paths(ask: TokenClient) -> dict[str, str]:
    """Return the numbers of requests that are counted for other paths than resources, by subresource."""
    pattern = re.compile(r'apiserver_request_total\{.*,resource="",.*,subresource="([^"]*)",.*\} (\d+)')
    lines = ask("GET", "/metrics")[1].decode().splitlines()
    return {found[1]: found[2] for line in lines if (found := pattern.match(line)) and found[1] != "/readyz"}
