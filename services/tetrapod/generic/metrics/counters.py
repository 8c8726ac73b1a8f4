"""Counters and gauges: a number for each set of label values, counted here or read at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tetrapod.generic.metrics.allowed_labels import constrained, is_constrained
from tetrapod.generic.metrics.metric import Metric


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
