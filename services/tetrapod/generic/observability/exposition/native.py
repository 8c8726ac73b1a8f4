"""Native histograms: exponential buckets, each at most a tenth wider than the one before.

Native counts cost nothing until a scraper first requests protobuf, the only format that shows them. Values are counted
natively from then on; earlier values are in the bucket of the upper bound of their classic bucket.
Upstream: component-base/metrics/internal/nativehistograms.go (factor 1.1, at most 160 buckets); client_golang's
prometheus/histogram.go
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.metrics.names import CLASSIC

SCHEMA: Final = 3
"""Each power of two is divided into 2**SCHEMA buckets: the lowest resolution with a growth below a tenth."""
_COARSEST: Final = -4
MOST_BUCKETS: Final = 160
ZERO_THRESHOLD: Final = 2.0**-128
_SPREAD: Final = 16
_GAP: Final = 2
_BOUNDS: Final = {
    schema: [0.5 * 2 ** (part / 2**schema) for part in range(2**schema)] for schema in range(1, SCHEMA + 1)
}
_classic: Final = frozenset(CLASSIC.split())


Native = tuple[int, int, dict[int, int], dict[int, int]]
"""The native counts of one set of labels as values: the schema, the number of zeros, and the counts of positive and of
negative values by bucket index.
"""


def key(value: float, schema: int) -> int:
    """Return the index of the bucket that contains a positive value.

    Each power of two is divided into 2**schema buckets; a negative schema joins several powers in one.
    """
    fraction, exponent = math.frexp(value)
    if schema > 0:
        bounds = _BOUNDS[schema]
        return bisect_left(bounds, fraction) + (exponent - 1) * len(bounds)
    if fraction == 0.5:
        exponent -= 1
    return (exponent + (1 << -schema) - 1) >> -schema


class Counts:
    """The bucket counts of a native histogram for one set of label values.

    Attributes:
        zero: the number of values between -`ZERO_THRESHOLD` and `ZERO_THRESHOLD`.
        buckets: the schema, and the counts of positive and of negative values by bucket index.
    """

    __slots__ = ("buckets", "zero")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Set all counts to 0."""
        self.zero = 0
        self.buckets: tuple[int, dict[int, int], dict[int, int]] = SCHEMA, {}, {}
        """Schema, counts of positive and counts of negative values; one tuple, because another thread reads them."""

    def add(self, value: float, times: int) -> None:
        """Count a value `times` times. If there are more than 160 buckets, their width is doubled."""
        if abs(value) <= ZERO_THRESHOLD:
            self.zero += times
            return
        schema, positive, negative = self.buckets
        counts = positive if value > 0 else negative
        at = key(abs(value), schema)
        counts[at] = counts.get(at, 0) + times
        while len(positive) + len(negative) > MOST_BUCKETS and schema > _COARSEST:
            schema, positive, negative = self.buckets = schema - 1, _widen(positive), _widen(negative)


def _widen(counts: Mapping[int, int]) -> dict[int, int]:
    """Return the counts in buckets twice as wide, by their new indexes."""
    wider: dict[int, int] = {}
    for at, count in counts.items():
        wider[(at + 1) // 2] = wider.get((at + 1) // 2, 0) + count
    return wider


class NativeBuckets:
    """The native (exponential) buckets of one `Histogram`, for each of its series.

    Values that the histogram has counted already are taken over at the upper bounds of their classic buckets. The
    methods identify a series by `row`, the list that `Histogram.row` returns for it.
    """

    def __init__(self, histogram: Histogram) -> None:
        self._by_row: dict[int, tuple[list[float], Counts]] = {}
        """Counts by the id of a row, with the row, so that its id is not reused."""
        bounds = (*histogram.buckets, histogram.buckets[-1] * 2)
        for _, row in histogram.rows():
            for bound, count in zip(bounds, row[:-1], strict=True):
                if count:
                    self.add(row, bound, int(count))

    def counts(self, row: list[float]) -> Counts:
        """Return the native counts of a series, which are created if they are missing. They are not a copy."""
        entry = self._by_row.get(id(row))
        if entry is None:
            entry = self._by_row[id(row)] = (row, Counts())
        return entry[1]

    def add(self, row: list[float], value: float, times: int = 1) -> None:
        """Count a value `times` times in the series of `row`."""
        self.counts(row).add(value, times)

    def spread(self, row: list[float], least: float, most: float, times: int) -> None:
        """Count `times` values in the series of `row`, evenly distributed from `least` to `most`.

        They are counted as at most 16 different values; a single one is `most`.
        """
        steps = min(times, _SPREAD)
        for step in range(steps):
            reached = most if times == 1 else least + (step + 0.5) / steps * (most - least)
            self.add(row, reached, times * (step + 1) // steps - times * step // steps)

    def snapshot(self, row: list[float]) -> Native:
        """Return a copy of the counts of a series: schema, count of zeros, positive and negative counts by index."""
        counts = self.counts(row)
        schema, positive, negative = counts.buckets
        return schema, counts.zero, positive.copy(), negative.copy()

    @classmethod
    def restore(cls, counts: Iterable[tuple[list[float], Native]]) -> NativeBuckets:
        """Return new buckets from pairs: the list of a series (`Histogram.row`), and a result of `snapshot` for it."""
        restored = cls.__new__(cls)
        restored._by_row = {}
        for row, (schema, zero, positive, negative) in counts:
            entry = restored.counts(row)
            entry.zero, entry.buckets = zero, (schema, positive, negative)
        return restored

    def clear(self) -> None:
        """Set the counts of all series to 0."""
        for _, counts in self._by_row.values():
            counts.clear()

    def drop(self, row: list[float]) -> None:
        """Remove the counts of a series that the histogram has dropped."""
        self._by_row.pop(id(row), None)


def sum_of(one: Native, other: Native) -> Native:
    """Return the sum of two counts. Their buckets are widened until they agree, and until there are at most 160."""
    schema = min(one[0], other[0])
    signs = []
    for sign in (2, 3):
        counts: dict[int, int] = {}
        for native in (one, other):
            of_sign = native[2] if sign == 2 else native[3]
            for _ in range(native[0] - schema):
                of_sign = _widen(of_sign)
            for at, count in of_sign.items():
                counts[at] = counts.get(at, 0) + count
        signs.append(counts)
    positive, negative = signs
    while len(positive) + len(negative) > MOST_BUCKETS and schema > _COARSEST:
        schema, positive, negative = schema - 1, _widen(positive), _widen(negative)
    return schema, one[1] + other[1], positive, negative


def begin(metrics: Sequence[Metric]) -> None:
    """Start native counting of the histograms in `metrics` that upstream counts natively and that have not started.

    Call it in the event loop's thread, which counts values. With a disabled feature gate, none is counted natively.
    """
    if not feature_gates.enabled("NativeHistograms"):
        return
    for metric in metrics:
        if isinstance(metric, Histogram) and metric.native is None and metric.name not in _classic:
            metric.native = NativeBuckets(metric)


def spans(counts: Mapping[int, int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Encode the counts of buckets as protobuf's spans and deltas.

    Returns:
        The runs of buckets as (distance from the end of the previous run, length), and the difference of each bucket to
            the previous one.
    """
    runs: list[tuple[int, int]] = []
    deltas: list[int] = []
    previous = 0
    for distance, count in _fill_gaps(counts):
        if distance is None:
            start, length = runs[-1]
            runs[-1] = start, length + 1
        else:
            runs.append((distance, 1))
        deltas.append(count - previous)
        previous = count
    return runs, deltas


def _fill_gaps(counts: Mapping[int, int]) -> Iterator[tuple[int | None, int]]:
    """Yield (distance, count) for each bucket in order, including the empty buckets in small gaps.

    The distance is that to the previous run for the first bucket of a run, and None for the others.
    """
    expected: int | None = None
    for at, count in sorted(counts.items()):
        gap = at if expected is None else at - expected
        if expected is None or gap > _GAP:
            yield gap, count
        else:
            for _ in range(gap):
                yield None, 0
            yield None, count
        expected = at + 1
