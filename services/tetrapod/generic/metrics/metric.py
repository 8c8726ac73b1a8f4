"""`Metric`: a family of series under upstream's name, and the lists of all families.

Subclasses keep their series in dictionaries: a counter of prometheus-client with labels costs 1.3 µs, a float in a dict
much less. `series.py` says how long a series lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

from tetrapod.generic.metrics.allowed_labels import constrained
from tetrapod.generic.metrics.names import BETA, STABLE
from tetrapod.generic.metrics.series import MOST_SERIES, OVERFLOWS, UNEXPECTED, on_change, retired

FAMILIES: Final[list[Metric]] = []
"""The metrics of /metrics, also those that are disabled."""
SLIS: Final[list[Metric]] = []
"""The metrics of /metrics/slis."""
_STABLE: Final = frozenset(STABLE.split())
_BETA: Final = frozenset(BETA.split())
_UNMARKED: Final = ("process_", "go_", "python_")

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
        listed = FAMILIES if among is None else among
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

        Each replaced value is counted in `OVERFLOWS`. --allow-metric-labels sets the allowed values.
        """
        allowed = constrained(self.name, self.labels, labels)
        if allowed != labels:
            OVERFLOWS[0] += sum(mine != other for mine, other in zip(allowed, labels, strict=True))
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
        OVERFLOWS[0] += 1
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


def _drop(labels: Mapping[str, str]) -> None:
    for metric in FAMILIES:
        metric.drop(labels)


on_change(_drop)


def stability(name: str) -> str:
    """Return the stability level of a metric: STABLE, BETA or ALPHA; "" for those of the process and the runtime."""
    if name.startswith(_UNMARKED):
        return ""
    return "STABLE" if name in _STABLE else "BETA" if name in _BETA else "ALPHA"


def shown_help(metric: Metric) -> str:
    """Return the HELP text of a metric, preceded by its stability level as upstream shows it."""
    level = stability(metric.name)
    return metric.help_prefix + (f"[{level}] {metric.help}" if level else metric.help)
