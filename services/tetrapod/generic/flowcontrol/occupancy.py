"""`Occupancy`: the requests and seats of one priority level, now and over time.

The numbers change with each request. Before a change, `_advance` adds the time since the last one to the utilization
metrics and to R, the progress of fair queuing.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset.go, syncTimeLocked and
canAccommodateSeatsLocked
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tetrapod.generic.flowcontrol import metrics
from tetrapod.generic.flowcontrol.integrator import Results
from tetrapod.generic.flowcontrol.queue import Queuing, Ticket
from tetrapod.generic.flowcontrol.utilization import Limits, Utilization


class Occupancy:
    """The requests of one priority level and the seats that they occupy, with its limits and its virtual time.

    Args:
        name: the name of the level.
        queuing: the queue settings.
        limit: the current limit of seats.
        clock: returns the current time in seconds.

    Attributes:
        waiting: the number of queued requests.
        executing: the number of executing requests.
        seats_waiting: the seats that the queued requests would occupy.
        seats_in_use: the seats that executing and lingering requests occupy.
        rejected: the number of requests so far that were rejected at once, or that stopped to wait.
        cancelled: the number of those that stopped to wait, because of a timeout or because the client left.
        timed_out: always 0; a column of the debug endpoints.
        dispatched: the number of requests so far that began to execute, by `Ticket.labels`.
        lingering: the seats of requests that have ended and keep them for a while, by `Ticket.labels`.
        utilization: the time that the level has spent with each number of requests and seats.
        nominal: the nominal seats of the level, for metrics; set by the level.
    """

    def __init__(self, name: str, queuing: Queuing, limit: int, clock: Callable[[], float]) -> None:
        self.name = name
        self.queuing = queuing
        self.limit = limit
        self.nominal = limit
        self.waiting = self.executing = 0
        self.seats_waiting = self.seats_in_use = 0
        self.rejected = self.timed_out = self.cancelled = 0
        self.dispatched: Counter[tuple[str, str]] = Counter()
        self.lingering: Counter[tuple[str, str]] = Counter()
        self.utilization = Utilization()
        self._clock = clock
        self._r = 0.0
        self._since = clock()
        self._active = 0  # queues with queued or executing requests

    @property
    def idle(self) -> bool:
        """Whether there are neither queued nor executing requests."""
        return not self.waiting and not self.executing

    @property
    def limits(self) -> Limits:
        """The limits to which the utilization metrics are relative."""
        return Limits(self.nominal, self.limit, max(self.queuing.queues, 0) * self.queuing.length_limit)

    @property
    def r(self) -> float:
        """The virtual time R at the last change."""
        return self._r

    def results(self) -> Results:
        """Return the statistics of the seats that queued and executing requests demanded since the last call."""
        self._advance()
        return self.utilization.demand(self.limits)

    def _advance(self) -> float:
        """Advance the virtual time R to now, by the average service rate of the active queues, and return the time."""
        now = self._clock()
        elapsed = now - self._since
        state = (self.waiting, self.executing, self.seats_waiting, self.seats_in_use)
        if not self.utilization.spend(state, elapsed):
            self.utilization.aggregate(self.limits)
        if self._active:
            self._r += self.seats_in_use / self._active * elapsed
        self._since = now
        return now

    def _fits(self, seats: int) -> bool:
        """Return whether a request that occupies `seats` can execute now. One wider than the limit must be alone."""
        if self.queuing.queues < 0:
            return True
        if seats > self.limit:
            return self.executing == 0
        return self.seats_in_use + seats <= self.limit

    def _execute(self, ticket: Ticket, now: float) -> None:
        """Count a request that begins to execute at `now`, and end its wait."""
        seats = ticket.seats
        ticket.started = now
        self.executing += 1
        self.dispatched[ticket.labels] += 1
        self.seats_in_use += seats
        if ticket.decision is not None and not ticket.decision.done():
            ticket.decision.set_result(None)

    def _reject(self, labels: tuple[str, str], reason: str) -> None:
        """Count a request that was rejected when it arrived. `reason` is a label of the metric."""
        self.rejected += 1
        metrics.REJECTED.add((*labels, reason))
