"""The flags of metrics: allowed values of labels, and deprecated metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.failing_starts import failed_start
from support.https_client import HttpsClient
from support.server import running

DEPRECATED = {
    "apiserver_cache_list_total": "counter",
    "apiserver_cache_list_fetched_objects_total": "counter",
    "apiserver_cache_list_returned_objects_total": "counter",
    "apiserver_storage_objects": "gauge",
    "etcd_bookmark_counts": "gauge",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    flags = (
        "--show-hidden-metrics-for-version=1.36",
        "--allow-metric-labels=apiserver_request_total,verb=GET,LIST",
        "--allow-metric-labels=apiserver_request_duration_seconds,resource=configmaps",
        "--allow-metric-labels=apiserver_resource_objects,resource=namespaces",
        "--allow-metric-labels=apiserver_current_inflight_requests,request_kind=mutating",
    )
    with running(tmp_path_factory.mktemp("data"), *flags) as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}).status == 201
        assert client.call("GET", "/api/v1/namespaces/default/configmaps").status == 200
        yield client


@pytest.fixture(scope="module")
def text(client: HttpsClient) -> str:
    page: str = client.call("GET", "/metrics").body
    return page


def values_of(text: str, metric: str, label: str) -> set[str]:
    lines = [line for line in text.splitlines() if line.startswith(metric + "{")]
    assert lines
    return {line.partition(f'{label}="')[2].partition('"')[0] for line in lines}


def test_other_values_of_a_counters_label_are_unexpected(text: str) -> None:
    assert values_of(text, "apiserver_request_total", "verb") == {"GET", "LIST", "unexpected"}
    assert "configmaps" in values_of(text, "apiserver_request_total", "resource")


def test_other_values_of_a_histograms_label_are_unexpected(text: str) -> None:
    assert values_of(text, "apiserver_request_duration_seconds_count", "resource") == {"configmaps", "unexpected"}


def test_other_values_of_a_gauges_label_are_unexpected(text: str) -> None:
    assert values_of(text, "apiserver_resource_objects", "resource") == {"namespaces", "unexpected"}
    assert values_of(text, "apiserver_current_inflight_requests", "request_kind") == {"mutating", "unexpected"}


def test_unexpected_values_are_counted(client: HttpsClient) -> None:
    name = "cardinality_enforcement_unexpected_categorizations_total"

    def count() -> float:
        lines = client.call("GET", "/metrics").body.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    before = count()
    assert client.call("DELETE", "/api/v1/namespaces/default/configmaps/nosuch").status == 404
    assert count() > before


@pytest.mark.parametrize(("name", "kind"), DEPRECATED.items())
def test_deprecated_metrics_are_shown(text: str, name: str, kind: str) -> None:
    level = "STABLE" if name == "apiserver_storage_objects" else "ALPHA"
    assert f"# TYPE {name} {kind}\n" in text
    assert f"# HELP {name} [{level}] (Deprecated since 1.3" in text


def test_deprecated_metrics_have_values(text: str) -> None:
    lines = text.splitlines()
    assert 'apiserver_storage_objects{resource="namespaces"} 4' in lines
    assert 'apiserver_storage_objects{resource="priorityclasses.scheduling.k8s.io"} 2' in lines
    assert any(
        line.startswith('apiserver_cache_list_total{group="",index="",resource="configmaps"} ') for line in lines
    )
    assert "hidden_metrics_total 0" in lines


@pytest.mark.long
@pytest.mark.parametrize(
    ("flag", "error"),
    [
        (
            "--show-hidden-metrics-for-version=1.35",
            "metrics.showHiddenMetricsForVersion: Invalid value: \"1.35\": must be omitted or have the value '1.36'; "
            "only the previous minor version is allowed",
        ),
        (
            "--allow-metric-labels=a",
            'invalid argument "a" for "--allow-metric-labels" flag: a must be formatted as key=value',
        ),
        (
            '--allow-metric-labels="a,b=c"d,"e=f"',
            'invalid argument "\\"a,b=c\\"d,\\"e=f\\"" for "--allow-metric-labels" flag: ',
        ),
        (
            "--allow-metric-labels=a,b\udcff=c",
            "metrics.allowListMapping: Invalid value: {'a,b\\udcff': 'c'}: must have keys with format ",
        ),
        (
            "--allow-metric-labels=a,b=c,d=e",
            'invalid argument "a,b=c,d=e" for "--allow-metric-labels" flag: a must be formatted as key=value',
        ),
        (
            "--allow-metric-labels=1a,b=c",
            'metrics.allowListMapping: Invalid value: {"1a,b":"c"}: must have keys with format `metricName,labelName` '
            'where metricName matches "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"',
        ),
        (
            "--allow-metric-labels-manifest=/nosuch",
            'metrics.allowListMappingManifest: Invalid value: "/nosuch": failed to read allow list manifest: open '
            "/nosuch: no such file or directory",
        ),
        (
            "--disabled-metrics=1 a",
            'metrics.disabledMetrics: Invalid value: ["1 a"]: must be fully qualified metric names matching '
            '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "1 a"',
        ),
    ],
)
def test_invalid_values_are_rejected_with_upstreams_texts(tmp_path: Path, flag: str, error: str) -> None:
    assert error in " ".join(failed_start(tmp_path, flag).stderr.split("\n"))


def test_a_manifest_names_the_allowed_values(tmp_path: Path) -> None:
    manifest = tmp_path / "labels.yaml"
    manifest.write_text('"apiserver_request_total,resource": "configmaps"\n')
    with running(tmp_path / "data", f"--allow-metric-labels-manifest={manifest}") as server:
        text = HttpsClient(server.kubeconfig).call("GET", "/metrics").body
        assert values_of(text, "apiserver_request_total", "resource") <= {"configmaps", "unexpected"}
