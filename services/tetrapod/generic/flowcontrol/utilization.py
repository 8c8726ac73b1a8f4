"""The timing histograms of demanded and occupied seats of a level.

Upstream observes, in effect, the value at the end of every nanosecond, so a count is a time in nanoseconds. Here the
time spent in each state is summed up. Histograms are computed from it when the limits change or when they are
scraped.
Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from tetrapod.generic.flowcontrol.integrator import Integrator, Results
from tetrapod.generic.metrics.histograms import TimingHistogram

_P: Final = "apiserver_flowcontrol_"
_DEMAND: Final = (0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6)
_SEATS: Final = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_REQUESTS: Final = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1)
_NANOSECONDS: Final = 1e9
MOST_STATES: Final = 512


class Limits(NamedTuple):
    """The values by which the utilization of a priority level is divided.

    Attributes:
        nominal: its nominal seats.
        current: its current seats, after lending and borrowing.
        places: the number of requests that all its queues together can hold.
    """

    nominal: int
    current: int
    places: int


State: TypeAlias = tuple[int, int, int, int]
"""The numbers of queued and executing requests, and the seats of both."""


class Utilization:
    """The utilization of one priority level: the time spent in each state, and the histograms computed from it.

    A state is the numbers of queued and executing requests and of their seats.

    Attributes:
        spent: the seconds in each state since the last call of `aggregate`.
    """

    def __init__(self) -> None:
        self.spent: dict[State, float] = {}
        self._demand = Integrator()  # of demanded seats
        self._rows = [[0.0] * (len(buckets) + 2) for buckets in (_DEMAND, _SEATS, _REQUESTS, _REQUESTS)]

    def spend(self, state: State, seconds: float) -> bool:
        """Add the seconds that the level was in a state. Return False if the caller must then call `aggregate`.

        That is so if more than MOST_STATES different states are recorded, because on a busy level their number would
        grow without limit.

        Args:
            state: the numbers of queued and of executing requests, and the seats of both.
            seconds: how long the level was in this state.
        """
        spent = self.spent
        spent[state] = spent.get(state, 0.0) + seconds
        return len(spent) <= MOST_STATES

    def aggregate(self, limits: Limits) -> None:
        """Add the recorded states to the histograms and the demand, and clear them.

        It must be called before the limits change.

        Args:
            limits: the limits at the time of the recorded states.
        """
        self._rows = self.rows(limits)
        for (_, _, seats_waiting, seats_in_use), seconds in self.spent.items():
            self._demand.add(seats_waiting + seats_in_use, seconds)
        self.spent.clear()

    def demand(self, limits: Limits) -> Results:
        """Return the statistics of the demanded seats (queued and in use) since the last call.

        `limits` are those of the time since the last call.
        """
        self.aggregate(limits)
        return self._demand.reset()

    def rows(self, limits: Limits) -> list[list[float]]:
        """Return the histogram rows of seat demand, seat use, executing requests and queued requests, in this order.

        They are new lists and include the recorded states, as shares of `limits`. A row is the counts of the buckets,
        followed by the sum.
        """
        rows = [list(row) for row in self._rows]
        nominal, current, places = (max(limit, 1) for limit in limits)
        for state, seconds in list(self.spent.items()):
            waiting, executing, seats_waiting, seats_in_use = state
            _add(rows[0], _DEMAND, (seats_waiting + seats_in_use) / nominal, seconds)
            _add(rows[1], _SEATS, seats_in_use / current, seconds)
            _add(rows[2], _REQUESTS, executing / current, seconds)
            _add(rows[3], _REQUESTS, waiting / places, seconds)
        return rows


def _add(row: list[float], buckets: tuple[float, ...], value: float, seconds: float) -> None:
    row[bisect_left(buckets, value)] += round(seconds * _NANOSECONDS)
    row[-1] += value * seconds * _NANOSECONDS


def register(levels: Callable[[], Iterable[tuple[str, list[list[float]]]]]) -> None:
    """Register the metrics. `levels` returns the name and `Utilization.rows` of each level when they are scraped."""
    observed = "Observations, at the end of every nanosecond, of"
    TimingHistogram(
        _P + "demand_seats",
        f"{observed} (the number of seats each priority level could use) / (nominal number of seats for that level)",
        ("priority_level",),
        _DEMAND,
        lambda: [((name,), rows[0]) for name, rows in levels()],
    )
    TimingHistogram(
        _P + "priority_level_seat_utilization",
        f"{observed} utilization of seats for any stage of execution (but only initial stage for WATCHes)",
        ("phase", "priority_level"),
        _SEATS,
        lambda: [(("executing", name), rows[1]) for name, rows in levels()],
    )
    TimingHistogram(
        _P + "priority_level_request_utilization",
        f"{observed} number of requests (as a fraction of the relevant limit) waiting or in any stage of execution "
        "(but only initial stage for WATCHes)",
        ("phase", "priority_level"),
        _REQUESTS,
        lambda: [
            ((phase, name), rows[index])
            for name, rows in levels()
            for phase, index in (("executing", 2), ("waiting", 3))
        ],
    )
