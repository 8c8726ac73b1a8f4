"""Rates and latencies from two samples of the metrics of all processes, and their history."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.console.exposition import Labels, Series, total

HISTORY: Final = 120
"""The number of samples in a chart."""
GAP: Final = 180.0
"""After so many seconds without a sample, when no browser showed the page, rates and charts begin again."""
_LONG: Final = frozenset({"WATCH", "CONNECT", "WATCHLIST"})
"""Verbs whose duration is that of a connection."""
_COUNTERS: Final = ("_total", "_bucket", "_sum", "_count")


@dataclass
class Sample:
    """The series of one process.

    Attributes:
        at: when they were read, in seconds of time.monotonic().
        series: the series by family.
    """

    at: float
    series: Mapping[str, Series]


@dataclass
class Traffic:
    """The samples of all processes, as what the page shows.

    Attributes:
        charts: the last values of each chart, by the name of the line.
    """

    _previous: dict[str, Sample] = field(default_factory=dict)
    _charts: dict[str, dict[str, deque[float | None]]] = field(default_factory=lambda: {"rate": {}, "p99": {}})

    def add(self, samples: dict[str, Sample]) -> dict[str, Any]:
        """Add a sample of each process that answered, and return the state of the panel.

        Rates are null until the second sample.

        Args:
            samples: the samples by the name of the process; at least one.
        """
        present = total(sample.series for sample in samples.values())
        latest = max((sample.at for sample in self._previous.values()), default=-math.inf)
        if max(sample.at for sample in samples.values()) - latest > GAP:
            self._previous = {}
            self._charts = {chart: {} for chart in self._charts}
        changes = [_rates(self._previous[name], sample) for name, sample in samples.items() if name in self._previous]
        rates = total(changes) if changes else None
        self._previous = samples
        flows, verbs = _flows(present, rates), _verbs(present, rates)
        levels = _levels(present, rates)
        if rates is not None:
            self._draw("rate", {level["level"]: level["rate"] for level in levels})
            self._draw("p99", {level["level"]: level["p99"] for level in levels})
        return {
            "flows": flows,
            "levels": levels,
            "verbs": verbs,
            "caches": _caches(present, rates),
            "charts": {
                chart: [{"name": name, "values": list(values)} for name, values in sorted(lines.items())]
                for chart, lines in self._charts.items()
            },
        }

    def _draw(self, chart: str, values: dict[str, float | None]) -> None:
        lines = self._charts[chart]
        longest = max((len(line) for line in lines.values()), default=0)
        for name in values:
            if name not in lines:
                lines[name] = deque([None] * longest, maxlen=HISTORY)
        for name, line in lines.items():
            line.append(values.get(name))


def _rates(before: Sample, after: Sample) -> dict[str, Series]:
    """Return the change of each counter, in units a second. A counter that is smaller than before has begun again."""
    seconds = max(after.at - before.at, 1e-3)
    rates: dict[str, Series] = {}
    for name, series in after.series.items():
        if name.endswith(_COUNTERS):
            old = before.series[name]
            rates[name] = {
                labels: (value - old.get(labels, 0.0) if value >= old.get(labels, 0.0) else value) / seconds
                for labels, value in series.items()
            }
    return rates


def _flows(present: Mapping[str, Series], rates: Mapping[str, Series] | None) -> list[dict[str, Any]]:
    prefix = "apiserver_flowcontrol_"
    keys = {
        labels
        for name in ("dispatched_requests_total", "rejected_requests_total", "current_inqueue_requests")
        for labels in present[prefix + name]
    }
    return [
        {
            "level": level,
            "schema": schema,
            "waiting": present[f"{prefix}current_inqueue_requests"].get((level, schema), 0.0),
            "total": present[f"{prefix}dispatched_requests_total"].get((level, schema), 0.0),
            "rate": _of(rates, f"{prefix}dispatched_requests_total", (level, schema)),
            "rejected": _of(rates, f"{prefix}rejected_requests_total", (level, schema)),
            "wait": _mean(rates, f"{prefix}request_wait_duration_seconds", (level, schema)),
            **_latencies(rates, f"{prefix}request_execution_seconds", (level, schema)),
        }
        for level, schema in sorted(keys)
    ]


def _levels(present: Mapping[str, Series], rates: Mapping[str, Series] | None) -> list[dict[str, Any]]:
    prefix = "apiserver_flowcontrol_"
    keys = {labels[0] for labels in present[f"{prefix}current_limit_seats"]}
    keys |= {labels[0] for labels in present[f"{prefix}dispatched_requests_total"]}
    by_level = None if rates is None else _sum_by_first(rates)
    return [
        {
            "level": level,
            "executing": present[f"{prefix}current_executing_seats"].get((level,), 0.0),
            "seats": present[f"{prefix}current_limit_seats"].get((level,)),
            "nominal": present[f"{prefix}nominal_limit_seats"].get((level,)),
            "waiting": _sum_of(present[f"{prefix}current_inqueue_requests"], level),
            "rate": _of(by_level, f"{prefix}dispatched_requests_total", (level,)),
            **_latencies(by_level, f"{prefix}request_execution_seconds", (level,)),
        }
        for level in sorted(keys)
    ]


def _verbs(present: Mapping[str, Series], rates: Mapping[str, Series] | None) -> list[dict[str, Any]]:
    requests = "apiserver_request_total"
    verbs = sorted({verb for verb, _ in present[requests]})
    rows = []
    for verb in verbs:
        failed = None
        if rates is not None:
            failed = sum(
                rate for (of, code), rate in rates[requests].items() if of == verb and not code.startswith(("2", "3"))
            )
        latencies = _latencies(None if verb in _LONG else rates, "apiserver_request_duration_seconds", (verb,))
        rate = None if rates is None else _sum_of(rates[requests], verb)
        rows.append(
            {"verb": verb, "total": _sum_of(present[requests], verb), "rate": rate, "failed": failed, **latencies}
        )
    return rows


def _caches(present: Mapping[str, Series], rates: Mapping[str, Series] | None) -> list[dict[str, Any]]:
    watches: Series = {}
    for (verb, group, resource), value in present["apiserver_longrunning_requests"].items():
        if verb == "WATCH":
            watches[group, resource] = watches.get((group, resource), 0.0) + value
    keys = {*present["watch_cache_capacity"], *present["apiserver_resource_objects"], *watches}
    return [
        {
            "group": group,
            "resource": resource,
            "watches": watches.get((group, resource), 0.0),
            "objects": present["apiserver_resource_objects"].get((group, resource)),
            "capacity": present["watch_cache_capacity"].get((group, resource)),
            "version": present["apiserver_watch_cache_resource_version"].get((group, resource)),
            "events": _of(rates, "apiserver_watch_cache_events_received_total", (group, resource)),
        }
        for group, resource in sorted(keys)
    ]


def _latencies(rates: Mapping[str, Series] | None, name: str, labels: Labels) -> dict[str, float | None]:
    """Return the mean and the estimated percentiles of a histogram in seconds; None without a request."""
    mean = _mean(rates, name, labels)
    if rates is None or mean is None:
        return {"mean": None, "p50": None, "p99": None}
    buckets = sorted(
        (math.inf if key[-1] == "+Inf" else float(key[-1]), rate)
        for key, rate in rates[f"{name}_bucket"].items()
        if key[:-1] == labels
    )
    return {"mean": mean, "p50": quantile(0.5, buckets), "p99": quantile(0.99, buckets)}


def quantile(share: float, buckets: list[tuple[float, float]]) -> float | None:
    """Return a quantile as Prometheus' histogram_quantile() estimates it; None for an empty histogram.

    Args:
        share: the quantile, such as 0.99.
        buckets: the upper bound and the cumulative count of each bucket, in the order of their bounds. The last bound
            is infinite.
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = share * buckets[-1][1]
    lower, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if math.isinf(bound):
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below if count > below else 1.0)
        lower, below = bound, count
    return lower


def _mean(rates: Mapping[str, Series] | None, name: str, labels: Labels) -> float | None:
    if rates is None or not (count := rates[f"{name}_count"].get(labels, 0.0)):
        return None
    return rates[f"{name}_sum"].get(labels, 0.0) / count


def _of(rates: Mapping[str, Series] | None, name: str, labels: Labels) -> float | None:
    return None if rates is None else rates[name].get(labels, 0.0)


def _sum_of(series: Series, first: str) -> float:
    return sum(value for labels, value in series.items() if labels[0] == first)


def _sum_by_first(rates: Mapping[str, Series]) -> dict[str, Series]:
    """Return the families of flows by priority level: without the label of the flow schema."""
    sums_by_family: dict[str, Series] = {}
    for name, series in rates.items():
        if name.startswith("apiserver_flowcontrol_"):
            sums = sums_by_family[name] = {}
            for labels, value in series.items():
                key = (labels[0], *labels[2:])
                sums[key] = sums.get(key, 0.0) + value
    return sums_by_family
