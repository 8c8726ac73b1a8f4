"""Metric families as plain values: read from this process, sent to other workers, and combined.

Counters, histograms and summaries of the workers are added up, and so are gauges, except for those that describe
the server or its store rather than a part of its work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from tetrapod.generic.metrics.counters import CounterFunction, GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram, HistogramFunction
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.metrics.series import retired
from tetrapod.generic.metrics.summaries import Summary, SummaryFunction
from tetrapod.generic.observability.exposition.native import Native, NativeBuckets, sum_of
from tetrapod.generic.observability.exposition.text import all_families

Labels = tuple[str, ...]

_MINIMUM: Final = frozenset({"kubernetes_healthcheck", "process_start_time_seconds"})
_MAXIMUM: Final = frozenset(
    {
        "aggregator_unavailable_apiservice",
        "apiserver_event_loop_longest_lag_seconds",
        "apiserver_event_loop_longest_step_seconds",
        "apiserver_flowcontrol_seat_fair_frac",
        "apiserver_requested_deprecated_apis",
        "apiserver_resource_objects",
        "apiserver_resource_size_estimate_bytes",
        "apiserver_storage_size_bytes",
        "apiserver_watch_cache_resource_version",
        "disabled_metrics_total",
        "informer_store_resource_version",
        "kube_apiserver_clusterip_allocator_allocated_ips",
        "kube_apiserver_clusterip_allocator_available_ips",
        "kubernetes_build_info",
        "kubernetes_feature_enabled",
        "leader_election_master_status",
        "process_network_receive_bytes_total",
        "process_network_transmit_bytes_total",
        "process_virtual_memory_max_bytes",
        "python_info",
        "registered_metrics_total",
        "tetrapod_service_replicas",
        "version_info",
        "watch_cache_capacity",
        "workqueue_longest_running_processor_seconds",
    }
)
_MAXIMUM_ENDINGS: Final = ("_info", "_timestamp_seconds")


class Family(msgspec.Struct, array_like=True):
    """A metric family of one worker, or of several.

    Attributes:
        name: the name.
        kind: `counter`, `gauge`, `histogram` or `summary`.
        help: the HELP text, without the stability level.
        help_prefix: the text before the stability level in HELP.
        labels: the names of the labels.
        values: the value of each series of a counter or gauge.
        buckets: the upper bounds of a histogram.
        rows: the row of each series of a histogram, as `Histogram.rows` returns it.
        native: the native buckets of each series of a histogram that has them.
        summaries: the (quantile, value) pairs, the count and the sum of each series of a summary.
    """

    name: str
    kind: str
    help: str
    help_prefix: str
    labels: Labels
    values: dict[Labels, float] = {}
    buckets: tuple[float, ...] = ()
    rows: dict[Labels, list[float]] = {}
    native: dict[Labels, Native] = {}
    summaries: dict[Labels, tuple[list[tuple[float, float]], float, float]] = {}


def read_families(metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> list[Family]:
    """Return the present values of metrics, sorted by name. With many series it is slow: call it in a thread.

    Args:
        metrics: the metrics.
        collectors: collectors of prometheus-client, whose metrics are included.
    """
    return [_read(metric) for metric in all_families(metrics, collectors)]


def _read(metric: Metric) -> Family:
    family = Family(metric.name, metric.kind, metric.help, metric.help_prefix, metric.labels)
    if isinstance(metric, Histogram | HistogramFunction):
        family.buckets = metric.buckets
        rows = list(metric.rows())
        family.rows = {labels: row[:] for labels, row in rows}
        if isinstance(metric, Histogram) and isinstance(metric.native, NativeBuckets):
            family.native = {labels: metric.native.snapshot(row) for labels, row in rows}
    elif isinstance(metric, Summary | SummaryFunction):
        family.summaries = {labels: (quantiles, count, total) for labels, quantiles, count, total in metric.rows()}
    else:
        family.values = {tuple(named.values()): value for _, named, value in metric.samples()}
    return family


def combine(workers: Iterable[Iterable[Family]]) -> list[Family]:
    """Return the families of several workers as those of one server, sorted by name. The arguments are changed."""
    combined: dict[str, Family] = {}
    for families in workers:
        for family in families:
            known = combined.get(family.name)
            if known is None:
                combined[family.name] = family
            else:
                _add(known, family)
    return [combined[name] for name in sorted(combined)]


def _add(known: Family, family: Family) -> None:
    choose = _rule(family.name)
    for labels, value in family.values.items():
        known.values[labels] = choose((known.values[labels], value)) if labels in known.values else value
    for labels, row in family.rows.items():
        other = known.rows.get(labels)
        known.rows[labels] = row if other is None else list(map(sum, zip(other, row, strict=True)))
        natives = [one.native[labels] for one in (known, family) if labels in one.native]
        known.native.pop(labels, None)
        if len(natives) == 1 + (other is not None):
            known.native[labels] = sum_of(natives[0], natives[-1]) if other is not None else natives[0]
    for labels, (quantiles, count, total) in family.summaries.items():
        if labels in known.summaries:
            others, other_count, other_total = known.summaries[labels]
            quantiles = [max(pair) for pair in zip(others, quantiles, strict=True)]
            count, total = count + other_count, total + other_total
        known.summaries[labels] = quantiles, count, total


def _rule(name: str) -> Callable[[Iterable[float]], float]:
    """Return the function that combines the values of a metric in all workers: `sum`, `min` or `max`, by its name."""
    if name in _MINIMUM:
        return min
    return max if name in _MAXIMUM or name.endswith(_MAXIMUM_ENDINGS) else sum


def counted(families: Iterable[Family]) -> list[Family]:
    """Return the families that count events (no gauges, and nothing combined by `min` or `max`).

    They are kept when a worker is replaced. Series of deleted objects are removed from them.
    """
    kept = [family for family in families if family.kind != "gauge" and _rule(family.name) is sum]
    for family in kept:
        for series in (family.values, family.rows, family.native, family.summaries):
            _drop_retired(family.labels, series)
    return kept


def _drop_retired(names: Labels, series: dict[Labels, Any]) -> None:
    for labels in [labels for labels in series if retired(names, labels)]:
        del series[labels]


def as_metrics(families: Iterable[Family]) -> list[Metric]:
    """Return the families as `Metric` objects, which the functions of `exposition` can render."""
    return [_as_metric(family) for family in families]


def _as_metric(family: Family) -> Metric:
    metric: Metric
    arguments = family.name, family.help, family.labels
    if family.kind == "histogram":
        metric = histogram = Histogram(*arguments, family.buckets, among=[])
        histogram.values = family.rows
        if family.native and len(family.native) == len(family.rows):
            pairs = [(family.rows[labels], native) for labels, native in family.native.items()]
            histogram.native = NativeBuckets.restore(pairs)
    elif family.kind == "summary":
        rows = [(labels, *values) for labels, values in family.summaries.items()]
        metric = SummaryFunction(*arguments, lambda: rows, among=[])
    else:
        make = CounterFunction if family.kind == "counter" else GaugeFunction
        metric = make(*arguments, lambda: list(family.values.items()), among=[])
    metric.help_prefix = family.help_prefix
    return metric


def encode(families: Sequence[Family]) -> bytes:
    """Return families as bytes for `decode`."""
    return msgspec.msgpack.encode(families)


def decode(data: bytes) -> list[Family]:
    """Return the families that `encode` has encoded.

    Raises:
        ValueError: the data is not a result of `encode`.
    """
    return msgspec.msgpack.decode(data, type=list[Family])


def gauge(name: str, help_text: str, value: float) -> Family:
    """Return the family of a gauge without labels."""
    return Family(name, "gauge", help_text, "", (), {(): value})
