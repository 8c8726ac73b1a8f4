"""Metrics under upstream's names, which observability/exposition renders when they are scraped.

They are counted in dictionaries: a counter of prometheus-client with labels costs 1.3 µs, a float in a dict much less.
series.py says how long a series lives.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from tetrapod.generic.metrics.allowed_labels import constrained, is_constrained
from tetrapod.generic.metrics.names import BETA, HIDDEN, STABLE
from tetrapod.generic.metrics.series import MOST_SERIES, UNEXPECTED, on_change, retired

_ALL: Final[list[Metric]] = []
_STABLE: Final = frozenset(STABLE.split())
_BETA: Final = frozenset(BETA.split())
_UNMARKED: Final = ("process_", "go_", "python_")
SLIS: Final[list[Metric]] = []
"""The metrics of /metrics/slis."""
DISABLED: Final = set[str]()
"""The names of the metrics that are not shown (--disabled-metrics)."""
BEFORE_SCRAPE: Final[list[Callable[[], Awaitable[None]]]] = []
"""Functions to await before metrics are rendered."""
RESETS: Final[list[Callable[[], None]]] = []
"""Functions that `reset` calls to reset numbers which are kept elsewhere and read at a scrape."""
LATENCY_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
"""The bounds in seconds of upstream's histograms of requests, to the server and to its store."""


SummaryRow = tuple[tuple[str, ...], list[tuple[float, float]], float, float]
"""A series of a summary: the label values, (quantile, value) pairs, the total count and the total sum."""


class Buckets(Protocol):
    """Counts values in the native (exponential) buckets of one `Histogram`, for each of its series.

    A series is identified by `row`, the list object that `Histogram.row` returns for it. `NativeBuckets`
    (observability/exposition/native.py) implements this, and explains the methods.
    """

    def add(self, row: list[float], value: float, times: int = 1) -> None: ...

    def spread(self, row: list[float], least: float, most: float, times: int) -> None: ...

    def clear(self) -> None: ...

    def drop(self, row: list[float]) -> None: ...


_Series = TypeVar("_Series", bound=tuple[Any, ...])


class Metric:
    """A family of series, one for each set of label values.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        among: the list to which the family is added; None for that of /metrics.

    Raises:
        ValueError: there is already a family of that name in the same list.
    """

    kind = ""
    help_prefix = ""
    """A text that the HELP line has before the stability level, such as "EXPERIMENTAL: "; usually empty."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), among: list[Metric] | None = None
    ) -> None:
        self.name, self.help, self.labels = name, help_text, tuple(labels)
        listed = _ALL if among is None else among
        if any(other.name == name for other in listed):
            raise ValueError(f"there are two metrics {name}")
        listed.append(self)

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the name, labels and value of each sample."""
        raise NotImplementedError

    def drop(self, labels: Mapping[str, str]) -> None:
        """Remove the series that have all these label values, given by label name. The default does nothing."""

    def _sorted(self, series: Iterable[_Series]) -> list[_Series]:
        """Return series by their label values, those of the alphabetically first label first.

        Args:
            series: tuples whose first element is the label values, in the order of `self.labels`.

        Upstream: client_golang's prometheus/internal/metric.go, MetricSorter
        """
        if not self.labels:
            return list(series)
        by_name = itemgetter(*sorted(range(len(self.labels)), key=self.labels.__getitem__))
        return sorted(series, key=lambda one: by_name(one[0]))

    def _constrained(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Return the label values under which a metric counts: "unexpected" in place of values that are not allowed.

        Each replaced value is counted in the metric `OVERFLOWS`. --allow-metric-labels sets the allowed values.
        """
        allowed = constrained(self.name, self.labels, labels)
        if allowed != labels:
            OVERFLOWS.add((), sum(mine != other for mine, other in zip(allowed, labels, strict=True)))
        return allowed

    def _key_of(self, labels: tuple[str, ...], count: int) -> tuple[str, ...] | None:
        """Return the label values under which to count a new series, or None if the series must not be created.

        Args:
            labels: the label values of the series. They are the result, unless the family has too many series.
            count: the number of series that the family has.

        Returns:
            None for a series of a deleted object; `unexpected` for each label if the family has MOST_SERIES.
        """
        if not labels:
            return labels
        if retired(self.labels, labels):
            return None
        if count < MOST_SERIES:
            return labels
        OVERFLOWS.add()
        return (UNEXPECTED,) * len(labels)

    def _drop_from(self, series: MutableMapping[tuple[str, ...], Any], labels: Mapping[str, str]) -> list[Any]:
        """Remove the entries of `series` that have all these label values, and return what was stored in them.

        Args:
            series: the data of each series, by its label values in the order of `self.labels`.
            labels: the label values that the removed series have, by label name. If the metric lacks one of these
                labels, nothing is removed.
        """
        if not all(name in self.labels for name in labels):
            return []
        values = itemgetter(*map(self.labels.index, labels))
        wanted = tuple(labels.values()) if len(labels) > 1 else next(iter(labels.values()))
        matching = [key for key in series if values(key) == wanted]  # 70 ns for each series
        return [series.pop(key) for key in matching]


class Counter(Metric):
    """A counter: a number for each set of label values, which only increases.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        among: the list to which the counter is added; None for that of /metrics.
    """

    kind = "counter"
    shows_zero = False
    """Whether a row is shown before anything was counted in it."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), among: list[Metric] | None = None
    ) -> None:
        super().__init__(name, help_text, labels, among)
        self.values: dict[tuple[str, ...], float] = {}
        self._rows: dict[tuple[str, ...], list[float]] = {}

    def add(self, labels: tuple[str, ...] = (), amount: float = 1) -> None:
        """Add `amount` to the series with these label values, which are in the order of the label names.

        The series is created if it does not exist. Nothing is counted if it belongs to a deleted object.
        """
        value = self.values.get(labels)
        if value is None:
            labels = self._constrained(labels)
            if (value := self.values.get(labels)) is None:
                key = self._key_of(labels, len(self.values) + len(self._rows))
                if key is None:
                    return
                labels, value = key, self.values.get(key, 0)
        self.values[labels] = value + amount

    def row(self, labels: tuple[str, ...]) -> list[float]:
        """Return a mutable list with the count of the series with these label values as its only element.

        Callers that count the same labels often keep the list and increment its element, which is faster than `add`.
        The exported value is the sum of this element and of the amounts passed to `add`. The list is not exported if
        the labels name a deleted object. If the counter has too many series, all further labels share one list.
        """
        row = self._rows.get(labels)
        if row is None:
            labels = self._constrained(labels)
            if (row := self._rows.get(labels)) is None:
                key = self._key_of(labels, len(self.values) + len(self._rows))
                row = [0.0] if key is None else self._rows.setdefault(key, [0.0])
        return row

    def clear(self) -> None:
        """Set all values to 0. The lists that `row` has returned stay valid."""
        self.values.clear()
        for row in self._rows.values():
            row[0] = 0.0

    def drop(self, labels: Mapping[str, str]) -> None:
        self._drop_from(self.values, labels)
        self._drop_from(self._rows, labels)

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        values = dict(self.values)
        for labels, (count,) in list(self._rows.items()):
            if count or self.shows_zero:
                values[labels] = values.get(labels, 0) + count
        if is_constrained(self.name):
            values = self._allowed(values)
        if not self.labels and not values:
            yield self.name, {}, 0.0
        for labels, value in self._sorted(values.items()):
            yield self.name, dict(zip(self.labels, labels, strict=True)), value

    def _allowed(self, values: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
        """Return values by their allowed labels. Series from before the allowed values were set are added up."""
        allowed: dict[tuple[str, ...], float] = {}
        for labels, value in values.items():
            key = constrained(self.name, self.labels, labels)
            allowed[key] = allowed.get(key, 0) + value
        return allowed


class Gauge(Counter):
    """A gauge: a counter that can also be set, and decreased by `add`."""

    kind = "gauge"
    shows_zero = True
    _is_set = False

    def clear(self) -> None:
        """Remove the series of a gauge with labels, as upstream, until each is set again.

        A gauge that counts what is open, by `add` or `row`, is not changed: the series would become negative.
        """
        if self._is_set and self.labels:
            self.values.clear()

    def set(self, labels: tuple[str, ...], value: float) -> None:
        """Set the value of the series with these label values, creating the series if it does not exist.

        Do nothing if a new series must not be created: its object was deleted, or the gauge has too many series.
        """
        self._is_set = True
        if labels not in self.values:
            labels = self._constrained(labels)
        if labels not in self.values and self._key_of(labels, len(self.values)) != labels:
            return  # the values of several series cannot be shown as one
        self.values[labels] = value


class GaugeFunction(Metric):
    """A gauge whose values are read when it is scraped.

    Args:
        name: the name.
        help_text: the HELP text.
        labels: the names of the labels.
        read: returns (label values, value) pairs.
        among: the list to which the family is added; None for that of /metrics.
    """

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str],
        read: Callable[[], Sequence[tuple[tuple[str, ...], float]]],
        among: list[Metric] | None = None,
    ) -> None:
        super().__init__(name, help_text, labels, among)
        self.read = read

    def _values(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """Return (label values, value) pairs, with "unexpected" in place of label values that are not allowed.

        If several series then have the same label values, the value of the last one is returned.
        """
        return {constrained(self.name, self.labels, labels): value for labels, value in self.read()}.items()

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, value in self._sorted(self._values()):
            yield self.name, dict(zip(self.labels, labels, strict=True)), value


class CounterFunction(GaugeFunction):
    """A counter whose values are read when it is scraped. The arguments have the meanings of `GaugeFunction`'s."""

    kind = "counter"

    def _values(self) -> Iterable[tuple[tuple[str, ...], float]]:
        values: dict[tuple[str, ...], float] = {}
        for labels, value in self.read():
            key = constrained(self.name, self.labels, labels)
            values[key] = values.get(key, 0) + value
        return values.items()


class Histogram(Metric):
    """A histogram with fixed upper bounds, and native buckets once a scraper has requested them.

    Each series is a list (`row`): the count of each bucket, without those of the buckets below it; the count above all
    bounds; and the sum of the values.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        buckets: the upper bounds in ascending order.
        among: the list to which the family is added; None for that of /metrics.
    """

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        among: list[Metric] | None = None,
    ) -> None:
        super().__init__(name, help_text, labels, among)
        self.buckets = tuple(buckets)
        self.values: dict[tuple[str, ...], list[float]] = {}  # counts per bucket, the count above all bounds, the sum
        # Set when a scraper first requests native histograms (generic/observability/exposition/native.py).
        self.native: Buckets | None = None

    def row(self, labels: tuple[str, ...]) -> list[float]:
        """Return the list with the counts of the series with these label values, to pass to `count` or `spread`.

        A missing series is created. Callers that count values of one series often keep the list, but must not modify
        it. If the series belongs to a deleted object, the list is a new one that is not exported.
        """
        row = self.values.get(labels)
        if row is None:
            row = [0.0] * (len(self.buckets) + 2)
            labels = self._constrained(labels)
            key = labels if labels in self.values else self._key_of(labels, len(self.values))
            if key is not None:
                row = self.values.setdefault(key, row)
        return row

    def drop(self, labels: Mapping[str, str]) -> None:
        for row in self._drop_from(self.values, labels):
            if self.native is not None:
                self.native.drop(row)

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        """Count a value in the series with these label values."""
        self.count(self.row(labels), value)

    def count(self, row: list[float], value: float) -> None:
        """Count a value in a series. `row` is the list that the method `row` returned for it."""
        row[bisect_left(self.buckets, value)] += 1
        row[-1] += value
        if self.native is not None:
            self.native.add(row, value)

    def spread(self, row: list[float], least: float, most: float, times: int) -> None:
        """Count `times` values in a series, evenly distributed from `least` to `most`; a single value counts as `most`.

        It is for operations that are too short to be timed one by one: the caller times many of them together. `row`
        is the list that the method `row` returned for the series.
        """
        if times == 1 or most <= least:
            row[bisect_left(self.buckets, most)] += times
        else:
            previous = 0.0
            for index in range(bisect_left(self.buckets, least), len(self.buckets) + 1):
                bound = self.buckets[index] if index < len(self.buckets) else most
                reached = times * min((bound - least) / (most - least), 1.0)
                row[index] += round(reached) - round(previous)
                previous = reached
                if bound >= most:
                    break
        row[-1] += times * (least + most) / 2 if times > 1 else most
        if self.native is not None:
            self.native.spread(row, least, most, times)

    def rows(self) -> Sequence[tuple[tuple[str, ...], list[float]]]:
        """Return (label values, counts) pairs of the series that have at least one value.

        The counts are those of each bucket, without the buckets below it, the count above all bounds, and the sum.

        A histogram without labels always returns its only series.
        """
        if not self.labels:
            return [((), self.row(()))]
        return self._sorted((labels, row) for labels, row in list(self.values.items()) if any(row))

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, row in self.rows():
            yield from _of_row(self.name, dict(zip(self.labels, labels, strict=True)), self.buckets, row)


class HistogramFunction(Metric):
    """A histogram that is kept elsewhere and read at each scrape.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        buckets: the upper bounds in ascending order.
        rows: called at each scrape. It returns pairs of label values and counts: those of each bucket, without the
            buckets below it, the count above all bounds, and the sum.
    """

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        rows: Callable[[], Sequence[tuple[tuple[str, ...], list[float]]]],
    ) -> None:
        super().__init__(name, help_text, labels)
        self.buckets = tuple(buckets)
        self._read = rows

    def rows(self) -> Sequence[tuple[tuple[str, ...], list[float]]]:
        """Return (label values, counts) pairs, one for each series.

        The counts are those of each bucket, without the buckets below it, the count above all bounds, and the sum. The
        counts of series whose label values became "unexpected" (--allow-metric-labels) are added up.
        """
        rows: dict[tuple[str, ...], list[float]] = {}
        for labels, row in self._read():
            key = constrained(self.name, self.labels, labels)
            rows[key] = [mine + more for mine, more in zip(rows[key], row, strict=True)] if key in rows else row
        return self._sorted(rows.items())

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, row in self.rows():
            yield from _of_row(self.name, dict(zip(self.labels, labels, strict=True)), self.buckets, row)


class TimingHistogram(HistogramFunction):
    """A histogram of a value over time: a bucket counts the nanoseconds for which the value was in its bounds.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        buckets: the upper bounds in ascending order.
        rows: called at each scrape. It returns pairs of label values and nanoseconds: those of each bucket, without the
            buckets below it, those above all bounds, and the sum of each value times its nanoseconds.

    Upstream: staging/src/k8s.io/component-base/metrics/timing_histogram.go
    """

    help_prefix = "EXPERIMENTAL: "


def _of_row(
    name: str, labels: dict[str, str], buckets: tuple[float, ...], row: list[float]
) -> Iterator[tuple[str, dict[str, str], float]]:
    total = 0.0
    for bound, count in zip((*buckets, float("inf")), row, strict=False):
        total += count
        yield f"{name}_bucket", {**labels, "le": _bound(bound)}, total
    yield f"{name}_sum", labels, row[-1]
    yield f"{name}_count", labels, total


class Summary(Metric):
    """A summary: the quantiles of the latest 1000 values of each series.

    Upstream computes them with a streaming algorithm over five hours.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        among: the list to which the family is added; None for that of /metrics.
    """

    kind = "summary"
    QUANTILES = (0.5, 0.9, 0.99)
    LATEST = 1000

    def __init__(self, name: str, help_text: str, labels: Sequence[str], among: list[Metric] | None = None) -> None:
        super().__init__(name, help_text, labels, among)
        # The latest values; the total count and sum.
        self.values: dict[tuple[str, ...], tuple[deque[float], list[float]]] = {}

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        """Count a value in the series with these label values."""
        row = self.values.get(labels)
        if row is None:
            labels = self._constrained(labels)
            key = labels if labels in self.values else self._key_of(labels, len(self.values))
            if key is None:
                return
            row = self.values.setdefault(key, (deque(maxlen=self.LATEST), [0.0, 0.0]))
        latest, total = row
        latest.append(value)
        total[0] += 1
        total[1] += value

    def drop(self, labels: Mapping[str, str]) -> None:
        self._drop_from(self.values, labels)

    def rows(self) -> Iterator[SummaryRow]:
        """Yield the label values, (quantile, value) pairs, total count and total sum of each series."""
        for labels, (latest, (count, total)) in self._sorted(list(self.values.items())):
            ordered = sorted(latest.copy())
            quantiles = [
                (quantile, ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]) for quantile in self.QUANTILES
            ]
            yield labels, quantiles, count, total

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        return _of_quantiles(self.name, self.labels, self.rows())


class SummaryFunction(Metric):
    """A summary that is kept elsewhere and read at each scrape.

    Args:
        name: the name.
        help_text: the HELP text, without the stability level.
        labels: the names of the labels.
        rows: called at each scrape. It returns the label values, (quantile, value) pairs, total count and total sum of
            each series.
        among: the list to which the family is added; None for that of /metrics.
    """

    kind = "summary"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str],
        rows: Callable[[], Iterable[SummaryRow]],
        among: list[Metric] | None = None,
    ) -> None:
        super().__init__(name, help_text, labels, among)
        self._read = rows

    def rows(self) -> list[SummaryRow]:
        """Return the label values, (quantile, value) pairs, total count and total sum of each series."""
        return self._sorted(self._read())

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        return _of_quantiles(self.name, self.labels, self.rows())


def _of_quantiles(
    name: str, labels: Sequence[str], rows: Iterable[SummaryRow]
) -> Iterator[tuple[str, dict[str, str], float]]:
    for values, quantiles, count, total in rows:
        named = dict(zip(labels, values, strict=True))
        for quantile, value in quantiles:
            yield name, {**named, "quantile": str(quantile)}, value
        yield f"{name}_sum", named, total
        yield f"{name}_count", named, count


HEALTHCHECK: Final = Gauge(
    "kubernetes_healthcheck", "This metric records the result of a single healthcheck.", ("name", "type"), SLIS
)
HEALTHCHECKS_TOTAL: Final = Counter(
    "kubernetes_healthchecks_total",
    "This metric records the results of all healthcheck.",
    ("name", "status", "type"),
    SLIS,
)
OVERFLOWS: Final = Counter(
    "cardinality_enforcement_unexpected_categorizations_total",
    "The count of unexpected categorizations during cardinality enforcement.",
)
STARTED: Final = time.time()
_begun = STARTED
for _shown, _help_prefix in ((_ALL, ""), (SLIS, "[ALPHA] ")):
    GaugeFunction(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        (),
        lambda: [((), STARTED)],
        _shown,
    ).help_prefix = _help_prefix


def _drop(labels: Mapping[str, str]) -> None:
    for metric in _ALL:
        metric.drop(labels)


on_change(_drop)


def _bound(value: float) -> str:
    """Return a bucket bound as Go formats it: `1`, `0.005`, `1e+06`."""
    if value == float("inf"):
        return "+Inf"
    if value == int(value) and value < 1e6:
        return str(int(value))
    if value < 1e6:
        return repr(value)
    from decimal import Decimal

    exact = Decimal(repr(value)).normalize()
    return f"{exact.scaleb(-exact.adjusted())}e+{exact.adjusted():02}"


def since() -> float:
    """Return when counting began or was last reset, in seconds since the epoch."""
    return _begun


def reset() -> None:
    """Set all counters, histograms and summaries to 0, and clear the gauges."""
    global _begun
    _begun = time.time()
    for metric in _ALL:
        if isinstance(metric, Summary):
            metric.values.clear()
        elif isinstance(metric, Histogram):
            for row in metric.values.values():
                row[:] = [0.0] * len(row)  # in place, because callers hold references to rows
            if metric.native is not None:
                metric.native.clear()
        elif isinstance(metric, Counter):
            metric.clear()
    for begin_anew in RESETS:
        begin_anew()


def reset_slis() -> None:
    """Set the counters of /metrics/slis to 0."""
    for metric in SLIS:
        if isinstance(metric, Counter):
            metric.clear()


def stability(name: str) -> str:
    """Return the stability level of a metric: STABLE, BETA or ALPHA; "" for those of the process and the runtime."""
    if name.startswith(_UNMARKED):
        return ""
    return "STABLE" if name in _STABLE else "BETA" if name in _BETA else "ALPHA"


def shown_help(metric: Metric) -> str:
    """Return the HELP text of a metric, preceded by its stability level as upstream shows it."""
    level = stability(metric.name)
    return metric.help_prefix + (f"[{level}] {metric.help}" if level else metric.help)


def disable_metrics(names: Iterable[str]) -> None:
    """Hide exactly the metrics with these names, also those that are created later.

    Upstream: staging/src/k8s.io/component-base/metrics/options.go, SetDisabledMetrics
    """
    DISABLED.clear()
    DISABLED.update(filter(None, names))


def hidden_names() -> set[str]:
    """Return the names of the metrics that are disabled, or deprecated and not registered."""
    return DISABLED | (set(HIDDEN.split()) - {metric.name for metric in _ALL})


def every() -> list[Metric]:
    """Return a new list of all metrics that are not disabled, except those of /metrics/slis."""
    return [metric for metric in _ALL if metric.name not in DISABLED]
