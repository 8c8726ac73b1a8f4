"""Metrics under upstream's names: cheap to count (a dictionary), shown by generic/exposition when they are scraped.

prometheus-client's own counters cost 1.3 µs with labels; ours are a dict of floats.
"""

from __future__ import annotations

import bisect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Protocol

from tetrapod.generic.metric_names import BETA, STABLE

_ALL: Final[list[Metric]] = []
_STABLE: Final = frozenset(STABLE.split())
_BETA: Final = frozenset(BETA.split())
_UNMARKED: Final = ("process_", "go_")
SLIS: Final[list[Metric]] = []
"""Those of /metrics/slis."""
BEFORE_SCRAPE: Final[list[Callable[[], Awaitable[None]]]] = []
"""What has to be asked for before metrics can be shown."""
RESETS: Final[list[Callable[[], None]]] = []
"""What begins to count anew with all others, where numbers are kept elsewhere and looked up."""


class Buckets(Protocol):
    """Those of a native histogram, by row."""

    def add(self, row: list[float], value: float, times: int = 1) -> None: ...

    def spread(self, row: list[float], least: float, most: float, times: int) -> None: ...

    def clear(self) -> None: ...


class Metric:
    kind = ""
    before = ""
    """What upstream says before the stability."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), among: list[Metric] | None = None) -> None:
        self.name, self.help, self.labels = name, help_text, tuple(labels)
        (_ALL if among is None else among).append(self)

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        raise NotImplementedError


class Counter(Metric):
    kind = "counter"

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = (), among: list[Metric] | None = None) -> None:
        super().__init__(name, help_text, labels, among)
        self.values: dict[tuple[str, ...], float] = {}
        self._rows: dict[tuple[str, ...], list[float]] = {}

    def add(self, labels: tuple[str, ...] = (), amount: float = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount

    def row(self, labels: tuple[str, ...]) -> list[float]:
        """A number of one set of labels, to be counted up in place: to be kept by who counts the same labels often."""
        return self._rows.setdefault(labels, [0.0])

    def clear(self) -> None:
        """Begin anew; rows stay good."""
        self.values.clear()
        for row in self._rows.values():
            row[0] = 0.0

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        values = dict(self.values)
        for labels, (count,) in self._rows.items():
            if count:
                values[labels] = values.get(labels, 0) + count
        if not self.labels and not values:
            yield self.name, {}, 0.0
        for labels, value in values.items():
            yield self.name, dict(zip(self.labels, labels, strict=True)), value


class Gauge(Counter):
    kind = "gauge"

    def set(self, labels: tuple[str, ...], value: float) -> None:
        self.values[labels] = value


class GaugeFunction(Metric):
    """A gauge that is looked up when scraped: `read` gives (label values, value) pairs."""

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

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, value in self.read():
            yield self.name, dict(zip(self.labels, labels, strict=True)), value


class CounterFunction(GaugeFunction):
    """A counter that is looked up when scraped."""

    kind = "counter"


class Histogram(Metric):
    kind = "histogram"

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str], buckets: Sequence[float], among: list[Metric] | None = None
    ) -> None:
        super().__init__(name, help_text, labels, among)
        self.buckets = tuple(buckets)
        self.values: dict[tuple[str, ...], list[float]] = {}  # counts per bucket, then above all, then the sum
        self.native: Buckets | None = None  # since somebody first asked for such (generic/exposition/native.py)

    def row(self, labels: tuple[str, ...]) -> list[float]:
        """The counts of one set of labels, for `count`: to be kept by who observes the same labels often."""
        row = self.values.get(labels)
        if row is None:
            row = self.values[labels] = [0.0] * (len(self.buckets) + 2)
        return row

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        self.count(self.row(labels), value)

    def count(self, row: list[float], value: float) -> None:
        row[bisect.bisect_left(self.buckets, value)] += 1
        row[-1] += value
        if self.native is not None:
            self.native.add(row, value)

    def spread(self, row: list[float], least: float, most: float, times: int) -> None:
        """As many values, evenly from `least` to `most`: of something done so often in one go that the clock is not read each time."""
        if times == 1 or most <= least:
            row[bisect.bisect_left(self.buckets, most)] += times
        else:
            before = 0.0
            for index in range(bisect.bisect_left(self.buckets, least), len(self.buckets) + 1):
                bound = self.buckets[index] if index < len(self.buckets) else most
                reached = times * min((bound - least) / (most - least), 1.0)
                row[index] += round(reached) - round(before)
                before = reached
                if bound >= most:
                    break
        row[-1] += times * (least + most) / 2 if times > 1 else most
        if self.native is not None:
            self.native.spread(row, least, most, times)

    def rows(self) -> Sequence[tuple[tuple[str, ...], list[float]]]:
        """Of what has been observed."""
        if not self.labels:
            return [((), self.row(()))]
        return [(labels, row) for labels, row in list(self.values.items()) if any(row)]

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, row in self.rows():
            yield from _of_row(self.name, dict(zip(self.labels, labels, strict=True)), self.buckets, row)


class HistogramFunction(Metric):
    """A histogram that is looked up when scraped: `rows` gives (label values, row) pairs."""

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
        self.rows = rows

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, row in self.rows():
            yield from _of_row(self.name, dict(zip(self.labels, labels, strict=True)), self.buckets, row)


class TimingHistogram(HistogramFunction):
    """One whose counts are nanoseconds."""

    before = "EXPERIMENTAL: "


def _of_row(name: str, labels: dict[str, str], buckets: tuple[float, ...], row: list[float]) -> Iterator[tuple[str, dict[str, str], float]]:
    total = 0.0
    for bound, count in zip((*buckets, float("inf")), row, strict=False):
        total += count
        yield f"{name}_bucket", {**labels, "le": _bound(bound)}, total
    yield f"{name}_count", labels, total
    yield f"{name}_sum", labels, row[-1]


class Summary(Metric):
    """Quantiles of the latest values. (Upstream's are of five hours, by a stream's sketch.)"""

    kind = "summary"
    QUANTILES = (0.5, 0.9, 0.99)
    LATEST = 1000

    def __init__(self, name: str, help_text: str, labels: Sequence[str], among: list[Metric] | None = None) -> None:
        super().__init__(name, help_text, labels, among)
        self.values: dict[tuple[str, ...], tuple[deque[float], list[float]]] = {}  # the latest; how many ever, and their sum

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        row = self.values.get(labels)
        if row is None:
            row = self.values[labels] = deque(maxlen=self.LATEST), [0.0, 0.0]
        latest, total = row
        latest.append(value)
        total[0] += 1
        total[1] += value

    def rows(self) -> Iterator[tuple[tuple[str, ...], list[tuple[float, float]], float, float]]:
        """Label values, (quantile, value) pairs, how many ever, and their sum."""
        for labels, (latest, (count, total)) in list(self.values.items()):
            ordered = sorted(latest.copy())
            quantiles = [(quantile, ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]) for quantile in self.QUANTILES]
            yield labels, quantiles, count, total

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for labels, quantiles, count, total in self.rows():
            named = dict(zip(self.labels, labels, strict=True))
            for quantile, value in quantiles:
                yield self.name, {**named, "quantile": str(quantile)}, value
            yield f"{self.name}_sum", named, total
            yield f"{self.name}_count", named, count


HEALTHCHECK: Final = Gauge("kubernetes_healthcheck", "This metric records the result of a single healthcheck.", ("name", "type"), SLIS)
HEALTHCHECKS_TOTAL: Final = Counter(
    "kubernetes_healthchecks_total", "This metric records the results of all healthcheck.", ("name", "status", "type"), SLIS
)
STARTED: Final = time.time()
_begun = STARTED
for _shown, _before in ((_ALL, ""), (SLIS, "[ALPHA] ")):
    GaugeFunction(
        "process_start_time_seconds", "Start time of the process since unix epoch in seconds.", (), lambda: [((), STARTED)], _shown
    ).before = _before


def _bound(value: float) -> str:
    """As Go writes it: `1`, `0.005`, `1e+06`."""
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
    """When all of them began to count."""
    return _begun


def reset() -> None:
    """Begin to count anew; what is measured as it is now (gauges) stays."""
    global _begun
    _begun = time.time()
    for metric in _ALL:
        if isinstance(metric, Summary):
            metric.values.clear()
        elif isinstance(metric, Histogram):
            for row in metric.values.values():
                row[:] = [0.0] * len(row)  # in place: whoever observes keeps hold of it
            if metric.native is not None:
                metric.native.clear()
        elif isinstance(metric, Counter) and not isinstance(metric, Gauge):
            metric.clear()
    for begin_anew in RESETS:
        begin_anew()


def stability(name: str) -> str:
    """What upstream says of how a metric may change; "" for those that are no component's own."""
    if name.startswith(_UNMARKED):
        return ""
    return "STABLE" if name in _STABLE else "BETA" if name in _BETA else "ALPHA"


def shown_help(metric: Metric) -> str:
    """Its text, with its stability before it."""
    level = stability(metric.name)
    return metric.before + (f"[{level}] {metric.help}" if level else metric.help)


def every() -> list[Metric]:
    """All that there are, but those of /metrics/slis."""
    return list(_ALL)
