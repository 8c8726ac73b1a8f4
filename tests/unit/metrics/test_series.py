"""Tests of series: they are dropped with their objects, and each family has a bounded number of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tetrapod.generic.metrics import metric, registry, series
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.summaries import Summary
from tetrapod.generic.observability.exposition import native

_LABELS = ("group", "resource", "verb")
_OF = {"group": "gone.example.com", "resource": "things"}
_KEY = ("gone.example.com", "things", "get")
_OTHER = ("", "pods", "get")


@pytest.fixture
def families() -> Iterator[tuple[Counter, Gauge, Histogram, Summary]]:
    """One family of each type, among the published ones."""
    before = len(metric.FAMILIES)
    yield (
        Counter("a_test_total", "A test.", _LABELS),
        Gauge("a_test", "A test.", _LABELS),
        Histogram("a_test_seconds", "A test.", _LABELS, (1.0,)),
        Summary("a_test_summary", "A test.", _LABELS),
    )
    del metric.FAMILIES[before:]
    series.restore(_OF)


def _shown(family: metric.Metric) -> set[str]:
    return {labels["resource"] for _, labels, _ in family.samples()}


def test_series_of_a_retired_resource_are_dropped_until_it_is_restored(
    families: tuple[Counter, Gauge, Histogram, Summary],
) -> None:
    counter, gauge, histogram, summary = families

    def count(key: tuple[str, ...]) -> None:
        counter.add(key)
        counter.row(key)[0] += 1
        gauge.set(key, 3)
        histogram.observe(key, 0.5)
        summary.observe(key, 0.5)

    for key in (_KEY, _OTHER):
        count(key)
    held = counter.row(_KEY), histogram.row(_KEY)
    series.retire(_OF)
    assert [_shown(family) for family in families] == [{"pods"}] * 4
    count(_KEY)  # a request that was in flight
    held[0][0] += 1
    histogram.count(held[1], 0.5)
    assert [_shown(family) for family in families] == [{"pods"}] * 4
    series.restore(_OF)
    count(_KEY)
    assert [_shown(family) for family in families] == [{"pods", "things"}] * 4
    assert {value for _, labels, value in counter.samples() if labels["resource"] == "things"} == {2}


def test_series_beyond_the_limit_are_counted_as_unexpected(
    families: tuple[Counter, Gauge, Histogram, Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric, "MOST_SERIES", 2)
    counter, gauge, histogram, summary = families
    before = series.OVERFLOWS[0]
    for number in range(5):
        key = ("", f"r{number}", "get")
        counter.add(key)
        gauge.set(key, number)
        histogram.observe(key, 0.5)
        summary.observe(key, 0.5)
    assert [_shown(family) for family in (counter, histogram, summary)] == [{"r0", "r1", series.UNEXPECTED}] * 3
    assert _shown(gauge) == {"r0", "r1"}
    assert {labels["verb"]: value for _, labels, value in counter.samples()}[series.UNEXPECTED] == 3
    assert series.OVERFLOWS[0] - before == 12


def test_the_count_of_unexpected_labels_is_shown_and_reset() -> None:
    name = "cardinality_enforcement_unexpected_categorizations_total"
    (shown,) = [family for family in registry.every() if family.name == name]
    registry.reset()
    series.OVERFLOWS[0] += 2
    assert [value for *_, value in shown.samples()] == [2]
    registry.reset()
    assert [value for *_, value in shown.samples()] == [0]


def test_a_dropped_row_leaves_nothing_in_native_histograms(families: tuple[Counter, Gauge, Histogram, Summary]) -> None:
    histogram = families[2]
    histogram.observe(_KEY, 0.5)
    buckets = native.NativeBuckets(histogram)
    histogram.native = buckets
    histogram.observe(_KEY, 0.5)
    assert len(buckets._by_row) == 1
    series.retire(_OF)
    assert not buckets._by_row


def test_two_families_of_one_name_are_rejected(families: tuple[Counter, Gauge, Histogram, Summary]) -> None:
    with pytest.raises(ValueError, match="a_test_total"):
        Counter("a_test_total", "Again.")
