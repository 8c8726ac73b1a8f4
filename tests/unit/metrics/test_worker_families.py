"""The metrics of several workers become those of one server."""

from __future__ import annotations

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.metrics.series import restore, retire
from tetrapod.generic.metrics.summaries import Summary
from tetrapod.generic.observability.exposition import messages, native, text
from tetrapod.generic.observability.worker_metrics.families import (
    Family,
    as_metrics,
    combine,
    counted,
    decode,
    encode,
    read_families,
)


def worker(value: float) -> list[Family]:
    """Return the metrics of a worker that has counted `value`, as another worker receives them."""
    metrics: list[Metric] = []
    Counter("requests_total", "Requests.", ("verb",), metrics).add(("GET",), value)
    Gauge("in_flight", "In flight.", (), metrics).set((), value)
    Gauge("version_info", "Version.", ("name",), metrics).set(("a",), 1)
    Gauge("kubernetes_healthcheck", "Healthy.", (), metrics).set((), value)
    histogram = Histogram("seconds", "Seconds.", ("verb",), (1.0, 10.0), metrics)
    native.begin([histogram])
    histogram.observe(("GET",), value)
    Summary("step_seconds", "Steps.", (), metrics).observe((), value)
    return decode(encode(read_families(metrics)))


def page(*workers: list[Family]) -> list[str]:
    lines = text.render(as_metrics(combine(workers))).decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_values_of_workers_are_combined_by_kind_and_name() -> None:
    assert page(worker(2), worker(5)) == [
        "in_flight 7",
        "kubernetes_healthcheck 2",
        'requests_total{verb="GET"} 7',
        'seconds_bucket{le="1",verb="GET"} 0',
        'seconds_bucket{le="10",verb="GET"} 2',
        'seconds_bucket{le="+Inf",verb="GET"} 2',
        'seconds_sum{verb="GET"} 7',
        'seconds_count{verb="GET"} 2',
        'step_seconds{quantile="0.5"} 5',
        'step_seconds{quantile="0.9"} 5',
        'step_seconds{quantile="0.99"} 5',
        "step_seconds_sum 7",
        "step_seconds_count 2",
        'version_info{name="a"} 1',
    ]


def test_native_histogram_contains_the_values_of_all_workers() -> None:
    combined = [family for family in combine((worker(2), worker(5))) if family.name == "seconds"]
    rendered = messages.render(as_metrics(combined), (), messages.compact_text).decode()
    assert "sample_count: 2 sample_sum: 7.0" in rendered
    buckets = "positive_span { offset: 8 length: 1 } positive_span { offset: 10 length: 1 }"
    assert f"{buckets} positive_delta: 1 positive_delta: 0 " in rendered


def test_native_buckets_of_different_widths_are_added_in_the_wider_ones() -> None:
    fine: native.Native = (3, 1, {8: 2, 9: 1}, {})
    coarse: native.Native = (2, 0, {5: 4}, {1: 1})
    assert native.sum_of(fine, coarse) == (2, 1, {4: 2, 5: 5}, {1: 1})


def test_histogram_is_classic_if_a_worker_has_no_native_buckets() -> None:
    one, other = ([family for family in worker(value) if family.name == "seconds"] for value in (2, 5))
    other[0].native = {}
    (metric,) = as_metrics(combine((one, other)))
    assert isinstance(metric, Histogram)
    assert metric.native is None
    assert [row for _, row in metric.rows()] == [[0.0, 2.0, 0.0, 7.0]]


def test_counters_without_deleted_objects_outlive_a_worker() -> None:
    assert {family.name for family in counted(worker(1))} == {"requests_total", "seconds", "step_seconds"}
    retire({"verb": "GET"})
    try:
        kept = {family.name: family for family in counted(worker(1))}
    finally:
        restore({"verb": "GET"})
    assert kept["requests_total"].values == {}
    assert kept["seconds"].rows == {}
    assert kept["seconds"].native == {}
