"""Summaries: quantiles of values, computed here from the latest ones or read at a scrape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tetrapod.generic.metrics.metric import Metric

SummaryRow = tuple[tuple[str, ...], list[tuple[float, float]], float, float]
"""A series of a summary: the label values, (quantile, value) pairs, the total count and the total sum."""


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
