"""Tests of the exposition formats that scrapers request, and of native histograms, which equal classic ones."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.metrics.counters import Counter, Gauge, GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.metrics.summaries import Summary, SummaryFunction, SummaryRow
from tetrapod.generic.observability.exposition import families_pb2 as pb
from tetrapod.generic.observability.exposition import messages, native, negotiate, text
from tetrapod.machinery.protobuf.wire import read_varint

_PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"
_SHOWN = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_values = st.floats(-1e12, 1e12, allow_nan=False)


def _families(metrics: list[Metric]) -> dict[str, pb.MetricFamily]:
    data, at, found = messages.render(metrics, (), messages.delimited), 0, {}
    while at < len(data):
        length, at = read_varint(data, at)
        family = pb.MetricFamily.FromString(data[at : at + length])
        found[family.name], at = family, at + length
    return found


def _histogram(name: str = "a_seconds") -> Histogram:
    elsewhere: list[Metric] = []
    return Histogram(name, "Of a test.", ("of",), (0.1, 1.0, 10.0), elsewhere)


@pytest.mark.parametrize(
    ("accept", "encoding", "content_type"),
    [
        ("", "", f"{_TEXT}; escaping=underscores"),
        ("*/*", "", f"{_TEXT}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0", "", f"{_TEXT}; escaping=underscores"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", "", f"{_TEXT}; escaping=allow-utf-8"),
        ("application/vnd.google.protobuf", "", f"{_TEXT}; escaping=underscores"),
        (f"{_PROTOBUF};encoding=delimited", "delimited", f"{_SHOWN}; encoding=delimited; escaping=underscores"),
        (f"{_PROTOBUF};encoding=text;escaping=values", "text", f"{_SHOWN}; encoding=text; escaping=values"),
        (
            f"{_PROTOBUF};encoding=compact-text",
            "compact-text",
            f"{_SHOWN}; encoding=compact-text; escaping=underscores",
        ),
        (
            f"text/plain;q=0.5,{_PROTOBUF};encoding=delimited;q=0.6",
            "delimited",
            f"{_SHOWN}; encoding=delimited; escaping=underscores",
        ),
        (f"text/plain;q=0.7,{_PROTOBUF};encoding=delimited;q=0.6", "", f"{_TEXT}; escaping=underscores"),
    ],
)
def test_the_form_is_what_the_scraper_prefers(accept: str, encoding: str, content_type: str) -> None:
    assert negotiate(accept) == (encoding, content_type)


@pytest.mark.parametrize(
    ("value", "schema", "key"),
    [(1.0, 3, 0), (1.01, 3, 1), (2.0, 3, 8), (0.000447391, 3, -89), (5.0, 0, 3), (5.0, -1, 2)],
)
def test_a_value_is_in_the_bucket_that_client_golang_puts_it_in(value: float, schema: int, key: int) -> None:
    assert native.key(value, schema) == key


@given(st.lists(_values, min_size=1, max_size=400))
@example([1.1**n for n in range(300)])
@example([-(10.0**n) for n in range(12)])
def test_a_native_histogram_has_every_value_in_at_most_160_buckets_around_it(values: list[float]) -> None:
    histogram = _histogram()
    native.begin([histogram])
    for value in values:
        histogram.observe(("x",), value)
    shown = _families([histogram])["a_seconds"].metric[0].histogram
    assert shown.sample_count == len(values) and shown.sample_sum == pytest.approx(sum(values))
    positive, negative = (_counts(shown, sign) for sign in ("positive", "negative"))
    assert len(positive) + len(negative) <= native.MOST_BUCKETS or shown.schema == -4
    assert shown.zero_count + sum(positive.values()) + sum(negative.values()) == len(values)
    for counts, those in ((positive, [v for v in values if v > 0]), (negative, [-v for v in values if v < 0])):
        keys = [native.key(v, shown.schema) for v in those if v > native.ZERO_THRESHOLD]
        # tolerance for rounding while buckets are merged
        assert all(abs(at - key) <= 1 for at, key in zip(_each(counts), sorted(keys), strict=True))


def _counts(histogram: pb.Histogram, sign: str) -> dict[int, int]:
    """Return the buckets that are not empty, reading spans and deltas as Prometheus does."""
    found, at, count = {}, 0, 0
    deltas = iter(getattr(histogram, f"{sign}_delta"))
    for span in getattr(histogram, f"{sign}_span"):
        at += span.offset
        for _ in range(span.length):
            count += next(deltas)
            if count:
                found[at] = count
            at += 1
    assert next(deltas, None) is None
    return found


def _each(counts: dict[int, int]) -> list[int]:
    return [at for at, count in counts.items() for _ in range(count)]


def test_small_gaps_are_filled_and_large_ones_begin_a_run() -> None:
    assert native.spans({-3: 1, -1: 4, 5: 2}) == ([(-3, 3), (5, 1)], [1, -1, 4, -2])
    assert native.spans({}) == ([], [])


@given(
    st.lists(st.floats(0, 20, allow_nan=False), min_size=1, max_size=50),
    st.lists(st.floats(0, 20, allow_nan=False), max_size=50),
)
def test_values_counted_before_the_first_native_scrape_are_included(before: list[float], after: list[float]) -> None:
    histogram = _histogram()
    for value in before:
        histogram.observe(("x",), value)
    assert not _families([histogram])["a_seconds"].metric[0].histogram.HasField("schema")
    native.begin([histogram])
    for value in after:
        histogram.observe(("x",), value)
    row = histogram.row(("x",))
    histogram.spread(row, 0.5, 2.0, 100)
    shown = _families([histogram])["a_seconds"].metric[0].histogram
    assert shown.sample_count == sum(row[:-1]) == len(before) + len(after) + 100
    assert [bucket.cumulative_count for bucket in shown.bucket] == [sum(row[: index + 1]) for index in range(3)]


def test_nothing_is_counted_natively_without_the_gate() -> None:
    feature_gates.configure(["NativeHistograms=false"])
    try:
        histogram = _histogram()
        native.begin([histogram])
        histogram.observe(("x",), 1.0)
        shown = _families([histogram])["a_seconds"].metric[0].histogram
        assert (shown.sample_count, shown.HasField("schema"), len(shown.positive_span)) == (1, False, 0)
    finally:
        feature_gates.configure([])


def test_series_are_sorted_by_their_labels_as_by_client_golang() -> None:
    metrics: list[Metric] = []
    names = ("zone", "kind")  # the values of "kind" are compared first
    written = (("b", "2"), ("b", "1"), ("a", "2"))
    counter, gauge = Counter("a_total", "A.", names, metrics), Gauge("b", "B.", names, metrics)
    histogram, summary = Histogram("c", "C.", names, (1.0,), metrics), Summary("d", "D.", names, metrics)
    for labels in written:
        counter.add(labels)
        gauge.set(labels, 1)
        histogram.observe(labels, 0.5)
        summary.observe(labels, 0.5)
    functions: list[Metric] = []
    GaugeFunction("e", "E.", names, lambda: [(labels, 1.0) for labels in written], functions)
    rows: list[SummaryRow] = [(labels, [(0.5, 1.0)], 1.0, 1.0) for labels in written]
    SummaryFunction("f", "F.", names, lambda: rows, functions)
    expected = [("1", "b"), ("2", "a"), ("2", "b")]
    shown = _families(metrics + functions)
    assert list(shown) == ["a_total", "b", "c", "d", "e", "f"]
    for family in shown.values():
        assert [tuple(pair.value for pair in metric.label) for metric in family.metric] == expected
    lines = [line.partition(" ")[0] for line in text.render([histogram]).decode().splitlines() if line[:1] != "#"]
    assert lines == [
        f'c{part}{{kind="{kind}",{bound}zone="{zone}"}}'
        for kind, zone in expected
        for part, bound in (("_bucket", 'le="1",'), ("_bucket", 'le="+Inf",'), ("_sum", ""), ("_count", ""))
    ]


def test_some_histograms_are_classic_in_every_form() -> None:
    histogram = _histogram("workqueue_queue_duration_seconds")
    native.begin([histogram])
    histogram.observe(("x",), 1.0)
    assert not _families([histogram])["workqueue_queue_duration_seconds"].metric[0].histogram.HasField("schema")


def test_families_are_in_order_and_messages_have_no_empty_ones() -> None:
    elsewhere: list[Metric] = []
    first, second = Counter("b_total", "B.", ("x",), elsewhere), Counter("a_total", "A.", (), elsewhere)
    lines = [line for line in text.render(elsewhere).splitlines() if line[:6] != b"# TYPE"]
    assert lines == [b"# HELP a_total [ALPHA] A.", b"a_total 0", b"# HELP b_total [ALPHA] B."]
    assert set(_families(elsewhere)) == {"a_total"}
    first.add(("1",), 2)
    second.add()
    assert [line for line in text.render(elsewhere).splitlines() if line[:1] != b"#"] == [
        b"a_total 1",
        b'b_total{x="1"} 2',
    ]
    assert {name: family.metric[0].counter.value for name, family in _families(elsewhere).items()} == {
        "a_total": 1,
        "b_total": 2,
    }


def test_summaries_and_labels_are_shown() -> None:
    elsewhere: list[Metric] = []
    summary = Summary("s", "S.", ("z", "a"), elsewhere)
    summary.observe(("1", "2"), 3.0)
    series = _families(elsewhere)["s"].metric[0]
    assert [(label.name, label.value) for label in series.label] == [("a", "2"), ("z", "1")]
    assert [(part.quantile, part.value) for part in series.summary.quantile] == [(0.5, 3.0), (0.9, 3.0), (0.99, 3.0)]
    assert b"sample_count: 1" in messages.render(elsewhere, (), messages.text)
    assert messages.render(elsewhere, (), messages.compact_text).count(b"\n") == 1
