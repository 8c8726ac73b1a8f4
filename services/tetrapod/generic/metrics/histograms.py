"""Histograms: the counts of values by buckets, counted here or read at a scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from tetrapod.generic.metrics.allowed_labels import constrained
from tetrapod.generic.metrics.metric import Metric

LATENCY_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
"""The bounds in seconds of upstream's histograms of requests, to the server and to its store."""


class Buckets(Protocol):
    """Counts values in the native (exponential) buckets of one `Histogram`, for each of its series.

    A series is identified by `row`, the list object that `Histogram.row` returns for it. `NativeBuckets`
    (observability/exposition/native.py) implements this, and explains the methods.
    """

    def add(self, row: list[float], value: float, times: int = 1) -> None: ...

    def spread(self, row: list[float], least: float, most: float, times: int) -> None: ...

    def clear(self) -> None: ...

    def drop(self, row: list[float]) -> None: ...


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
        row[0 if value <= self.buckets[0] else bisect_left(self.buckets, value)] += 1
        row[-1] += value
        if self.native is not None:
            self.native.add(row, value)

    def counter(self, row: list[float]) -> Callable[[float], None]:
        """Return a function that counts a value in a series, like `count`, in two thirds of the time.

        Args:
            row: the list that the method `row` returned for the series.
        """
        buckets, first, last = self.buckets, self.buckets[0], len(self.buckets) + 1

        def count(value: float) -> None:
            if value <= first:  # as most latencies of filters
                row[0] += 1
            else:
                row[bisect_left(buckets, value)] += 1
            row[last] += value
            if self.native is not None:
                self.native.add(row, value)

        return count

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
        return _of_buckets(self.name, self.labels, self.buckets, self.rows())


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
        return _of_buckets(self.name, self.labels, self.buckets, self.rows())


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


def _of_buckets(
    name: str,
    labels: Sequence[str],
    buckets: Sequence[float],
    rows: Iterable[tuple[tuple[str, ...], list[float]]],
) -> Iterator[tuple[str, dict[str, str], float]]:
    bounds = [*map(_bound, buckets), _bound(float("inf"))]
    for values, row in rows:
        named = dict(zip(labels, values, strict=True))
        total = 0.0
        for bound, count in zip(bounds, row, strict=False):
            total += count
            yield f"{name}_bucket", {**named, "le": bound}, total
        yield f"{name}_sum", named, row[-1]
        yield f"{name}_count", named, total


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
