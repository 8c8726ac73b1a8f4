"""All metrics of the process together: which of them are shown, and their reset.

Importing this module registers the metrics of the registry itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from tetrapod.generic.metrics.counters import Counter, CounterFunction, GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.metric import FAMILIES, SLIS, Metric
from tetrapod.generic.metrics.names import HIDDEN
from tetrapod.generic.metrics.series import OVERFLOWS
from tetrapod.generic.metrics.summaries import Summary

DISABLED: Final = set[str]()
"""The names of the metrics that are not shown (--disabled-metrics)."""
BEFORE_SCRAPE: Final[list[Callable[[], Awaitable[None]]]] = []
"""Functions to await before metrics are rendered."""
RESETS: Final[list[Callable[[], None]]] = []
"""Functions that `reset` calls to reset numbers which are kept elsewhere and read at a scrape."""
STARTED: Final = time.time()
"""When the process started, in seconds since the epoch."""
_begun = STARTED

CounterFunction(
    "cardinality_enforcement_unexpected_categorizations_total",
    "The count of unexpected categorizations during cardinality enforcement.",
    (),
    lambda: [((), OVERFLOWS[0])],
)
for _shown, _help_prefix in ((FAMILIES, ""), (SLIS, "[ALPHA] ")):
    GaugeFunction(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        (),
        lambda: [((), STARTED)],
        _shown,
    ).help_prefix = _help_prefix


def since() -> float:
    """Return when counting began or was last reset, in seconds since the epoch."""
    return _begun


def reset() -> None:
    """Set all counters, histograms and summaries to 0, and clear the gauges."""
    global _begun
    _begun = time.time()
    for metric in FAMILIES:
        if isinstance(metric, Summary):
            metric.values.clear()
        elif isinstance(metric, Histogram):
            for row in metric.values.values():
                row[:] = [0.0] * len(row)  # in place, because callers hold references to rows
            if metric.native is not None:
                metric.native.clear()
        elif isinstance(metric, Counter):
            metric.clear()
    OVERFLOWS[0] = 0.0
    for begin_anew in RESETS:
        begin_anew()


def with_series(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics that have a series. Upstream shows no others."""
    return [metric for metric in metrics if next(metric.samples(), None) is not None]


def reset_slis() -> None:
    """Set the counters of /metrics/slis to 0."""
    for metric in SLIS:
        if isinstance(metric, Counter):
            metric.clear()


def disable_metrics(names: Iterable[str]) -> None:
    """Hide exactly the metrics with these names, also those that are created later.

    Upstream: staging/src/k8s.io/component-base/metrics/options.go, SetDisabledMetrics
    """
    DISABLED.clear()
    DISABLED.update(filter(None, names))


def hidden_names() -> set[str]:
    """Return the names of the metrics that are disabled, or deprecated and not registered."""
    return DISABLED | (set(HIDDEN.split()) - {metric.name for metric in FAMILIES})


def every() -> list[Metric]:
    """Return a new list of all metrics that are not disabled, except those of /metrics/slis."""
    return [metric for metric in FAMILIES if metric.name not in DISABLED]
