"""Metrics as Prometheus' protobuf messages, the only format with native histograms.

Upstream: client_golang's Write of each kind of metric, and prometheus/common/expfmt/encode.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tetrapod.generic.metrics.histograms import Histogram, HistogramFunction
from tetrapod.generic.metrics.metric import Metric, shown_help
from tetrapod.generic.metrics.registry import since
from tetrapod.generic.metrics.summaries import Summary, SummaryFunction
from tetrapod.generic.observability.exposition import families_pb2 as pb
from tetrapod.generic.observability.exposition.native import ZERO_THRESHOLD, NativeBuckets, spans
from tetrapod.generic.observability.exposition.text import all_families
from tetrapod.machinery.protobuf.wire import varint

_KINDS: Final = {
    "counter": pb.COUNTER,
    "gauge": pb.GAUGE,
    "summary": pb.SUMMARY,
    "histogram": pb.HISTOGRAM,
}


def render(metrics: Sequence[Metric], collectors: Sequence[Any], write: Callable[[pb.MetricFamily], bytes]) -> bytes:
    """Return the metrics, sorted by name, with each family encoded by `write`. Families without series are left out.

    With many series it is slow: call it in a thread.

    Args:
        metrics: the metrics.
        collectors: collectors of prometheus-client, whose metrics are included.
        write: encodes a family: `delimited`, `text` or `compact_text`.
    """
    families = map(_family, all_families(metrics, collectors))
    return b"".join(write(family) for family in families if family.metric)


def delimited(family: pb.MetricFamily) -> bytes:
    """Return a family in protobuf, preceded by its length."""
    message = family.SerializeToString()
    return varint(len(message)) + message


def text(family: pb.MetricFamily) -> bytes:
    """Return a family as protobuf text."""
    from google.protobuf import text_format

    return f"{text_format.MessageToString(family)}\n".encode()


def compact_text(family: pb.MetricFamily) -> bytes:
    """Return a family as protobuf text on one line."""
    from google.protobuf import text_format

    return f"{text_format.MessageToString(family, as_one_line=True)}\n".encode()


def _family(metric: Metric) -> pb.MetricFamily:
    family = pb.MetricFamily(name=metric.name, help=shown_help(metric), type=_KINDS[metric.kind])
    family.metric.extend(_series(metric))
    return family


def _series(metric: Metric) -> Iterator[pb.Metric]:
    if isinstance(metric, Histogram | HistogramFunction):
        native = metric.native if isinstance(metric, Histogram) else None
        for labels, row in metric.rows():
            histogram = _histogram(metric.buckets, row, native if isinstance(native, NativeBuckets) else None)
            yield pb.Metric(label=_labels(dict(zip(metric.labels, labels, strict=True))), histogram=histogram)
    elif isinstance(metric, Summary | SummaryFunction):
        for labels, quantiles, count, total in metric.rows():
            summary = pb.Summary(
                sample_count=int(count),
                sample_sum=total,
                quantile=[pb.Quantile(quantile=quantile, value=value) for quantile, value in quantiles],
                created_timestamp=_created(),
            )
            yield pb.Metric(label=_labels(dict(zip(metric.labels, labels, strict=True))), summary=summary)
    else:
        for _, named, value in metric.samples():
            yield _value(metric.kind, named, value)


def _value(kind: str, labels: Mapping[str, str], value: float) -> pb.Metric:
    if kind == "counter":
        return pb.Metric(label=_labels(labels), counter=pb.Counter(value=value, created_timestamp=_created()))
    return pb.Metric(label=_labels(labels), gauge=pb.Gauge(value=value))


def _histogram(bounds: Sequence[float], row: list[float], native: NativeBuckets | None) -> pb.Histogram:
    *counts, total = row[:]
    histogram = pb.Histogram(sample_count=int(sum(counts)), sample_sum=total, created_timestamp=_created())
    if native is not None:
        _add_native(histogram, native, row)
    reached = 0
    for bound, count in zip(bounds, counts, strict=False):  # the last count is that of values above all bounds
        reached = min(reached + int(count), histogram.sample_count)
        histogram.bucket.add(cumulative_count=reached, upper_bound=bound)
    return histogram


def _add_native(histogram: pb.Histogram, native: NativeBuckets, row: list[float]) -> None:
    """Add the native buckets of a row to a histogram message.

    The sample count is set to the sum of these buckets, because the event loop may count values at the same time.
    """
    counts = native.counts(row)
    schema, above, below = counts.buckets
    zero, positive, negative = counts.zero, above.copy(), below.copy()
    histogram.sample_count = zero + sum(positive.values()) + sum(negative.values())
    histogram.schema, histogram.zero_threshold, histogram.zero_count = schema, ZERO_THRESHOLD, zero
    for buckets_of_sign, runs, deltas in (
        (positive, histogram.positive_span, histogram.positive_delta),
        (negative, histogram.negative_span, histogram.negative_delta),
    ):
        bucket_spans, differences = spans(buckets_of_sign)
        for offset, length in bucket_spans:
            runs.add(offset=offset, length=length)
        deltas.extend(differences)


def _labels(labels: Mapping[str, str]) -> list[pb.LabelPair]:
    return [pb.LabelPair(name=name, value=value) for name, value in sorted(labels.items())]


def _created() -> pb.Timestamp:
    seconds = since()
    return pb.Timestamp(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))
