"""`QueueSet`: the queues of one priority level.

Requests are queued by flow and dispatched fairly, as long as there are free seats.

It differs from upstream in some points:
- Everything runs on the event loop, so it needs no locks.
- The progress meter R is a float, which needs no epochs.
- The inputs of R's rate are kept as sums instead of being recounted at each step.
- Gauges are computed from the tickets when they are scraped.
- Upstream corrects its estimate of a request's duration when the request ends. Until then a flood of long requests
  appears to have had less than its share, and others wait (measured: 30 ms where each lasted 45). Here the elapsed time
  of executing requests counts at once.
- A flow may hold at most seven eighths of a level's seats, so that requests of other flows find free seats. A flood's
  seats become free only when its requests end, and those end by the dozen.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset (doc.go explains the virtual time)
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.flowcontrol import metrics
from tetrapod.generic.flowcontrol.integrator import Results
from tetrapod.generic.flowcontrol.utilization import Limits, Utilization
from tetrapod.generic.flowcontrol.work_estimator import Estimate
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

_LEFT_TO_OTHERS: Final = 8
"""One of this many seats is reserved for other flows."""
_SERVICE_SECONDS: Final = 0.003
"""Assumed duration of a request that has not ended (estimatedServiceDuration)."""


@dataclass(frozen=True, slots=True)
class Queuing:
    """The queue settings of a priority level.

    Attributes:
        queues: the number of queues; 0 if requests beyond the limit are rejected at once, -1 if requests are not
            limited.
        length_limit: the most requests in a queue.
        hand_size: the number of queues from which a flow's requests choose.
    """

    queues: int
    length_limit: int = 0
    hand_size: int = 0


class Ticket:
    """A request at a priority level. It is queued, or executes and occupies seats until `QueueSet.finish`.

    Args:
        estimate: the estimate of its work.
        labels: the names of its priority level and its FlowSchema, for metrics.
        distinguisher: the flow distinguisher, for the debug endpoints.
        user: the user.
        info: the request info.
        now: the time of the arrival.
        arrival_r: the virtual time of the arrival.

    Attributes:
        seats: the seats that it occupies while it executes.
        work: its estimated work in seat-seconds.
        hand: the indexes of the queues from which it chose; they identify its flow within the level.
        queue: the queue that it was put into; None if the level has no queues.
        decision: done when it may execute; None if it never had to wait.
        started: when it began to execute, by the clock; negative while it is queued.
    """

    __slots__ = (
        "arrival",
        "arrival_r",
        "decision",
        "distinguisher",
        "estimate",
        "hand",
        "info",
        "labels",
        "queue",
        "seats",
        "started",
        "user",
        "work",
    )

    def __init__(
        self,
        estimate: Estimate,
        labels: tuple[str, str],
        distinguisher: str,
        user: UserInfo,
        info: RequestInfo,
        now: float,
        arrival_r: float,
    ) -> None:
        self.estimate = estimate
        self.seats = estimate.seats
        self.labels = labels  # for metrics: priority level, flow schema
        self.distinguisher = distinguisher
        self.user = user
        self.info = info
        self.arrival = now
        self.arrival_r = arrival_r
        self.started = -1.0  # time of the clock; negative while it is queued
        self.work = estimate.initial * _SERVICE_SECONDS + estimate.final * estimate.linger
        self.hand: tuple[int, ...] = ()  # the queues from which it chose; they identify its flow within the level
        self.queue: Queue | None = None
        self.decision: asyncio.Future[None] | None = None  # done when it may execute; None if it never had to wait

    @property
    def waits(self) -> bool:
        """Whether the request is queued, and not executing."""
        return self.started < 0


class Queue:
    """One queue of a priority level, with its queued requests and those executing requests that came from it.

    Attributes:
        index: its position among the queues of the level.
        waiting: the queued requests, the oldest first.
        executing: the executing requests.
        seats: the seats that its requests occupy, executing or lingering.
        next_r: the virtual time at which its next request would be dispatched in ideal fair sharing (upstream:
            nextDispatchR).
        work: the total work of the queued requests, in seat-seconds.
        running: the initial seats of the executing requests.
        began: the sum of the start times of the executing requests, weighted by their initial seats.
    """

    __slots__ = ("began", "executing", "index", "next_r", "running", "seats", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.executing: set[Ticket] = set()
        self.seats = 0
        # R at which its next request would be dispatched in ideal fair sharing (upstream: nextDispatchR)
        self.next_r = 0.0
        self.work = 0.0  # total work of the queued requests
        self.running = 0  # initial seats of executing requests
        self.began = 0.0  # sum of their start times, weighted by seats

    @property
    def active(self) -> bool:
        """Whether the queue has queued or executing requests."""
        return bool(self.waiting or self.executing)

    def served(self, now: float) -> float:
        """Return `next_r`, corrected for the requests that execute.

        `next_r` counts them by their estimated duration, the result by the time that they have taken until `now`.
        """
        return self.next_r + self.running * (now - _SERVICE_SECONDS) - self.began

    def push(self, ticket: Ticket) -> None:
        """Append a request to the queue and add its work."""
        self.waiting.append(ticket)
        self.work += ticket.work

    def remove(self, ticket: Ticket) -> None:
        """Subtract the work of a request from `work`, after the caller has removed it from `waiting`."""
        self.work = self.work - ticket.work if self.waiting else 0.0

    def begin(self, ticket: Ticket, now: float) -> None:
        """Add a request that starts to execute at `now` to `executing`, `seats`, `next_r`, `running` and `began`."""
        self.executing.add(ticket)
        self.seats += ticket.seats
        self.next_r += ticket.work
        self.running += ticket.estimate.initial
        self.began += ticket.estimate.initial * now

    def end(self, ticket: Ticket, now: float) -> None:
        """Remove a request that has ended at `now` from `executing`, `running` and `began`.

        `next_r`, which counts the estimated duration of the request, is corrected by its actual duration. `seats` is
        not changed: the caller releases the seats now, or after the request has lingered.
        """
        self.executing.discard(ticket)
        self.next_r -= ticket.estimate.initial * (_SERVICE_SECONDS - (now - ticket.started))
        self.running -= ticket.estimate.initial
        self.began = self.began - ticket.estimate.initial * ticket.started if self.running else 0.0


class QueueSet:
    """The queues of one priority level.

    Args:
        name: the name of the level.
        queuing: the queue settings.
        limit: the current limit of seats.
        clock: returns the current time in seconds.

    Attributes:
        queues: the queues; empty for a level without queues.
        queueless: the executing requests of a level without queues.
        waiting: the number of queued requests.
        executing: the number of executing requests.
        seats_waiting: the seats that the queued requests would occupy.
        seats_in_use: the seats that executing and lingering requests occupy.
        rejected: the number of requests so far that were rejected at once, or that stopped to wait.
        cancelled: the number of those that stopped to wait, because of a timeout or because the client left.
        timed_out: always 0; a column of the debug endpoints.
        dispatched: the number of requests so far that began to execute, by `Ticket.labels`.
        lingering: the seats of requests that have ended and keep them for a while, by `Ticket.labels`.
        nominal: the nominal seats of the level, for metrics; set by the level.
        dispatch_r: the virtual time at which the last request was dispatched.
        latest_s: the virtual start time of that request.
    """

    def __init__(self, name: str, queuing: Queuing, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.queuing = queuing
        self.limit = limit
        self.queues: list[Queue] = []
        self.queueless: set[Ticket] = set()  # executing requests of a level without queues
        self.waiting = self.executing = 0
        self.seats_waiting = self.seats_in_use = 0
        self.rejected = self.timed_out = self.cancelled = 0
        self.dispatched: Counter[tuple[str, str]] = Counter()  # by metric labels
        self.lingering: Counter[tuple[str, str]] = Counter()  # seats
        self.utilization = Utilization()
        self.nominal = limit
        # of the last dispatched request: R when it was dispatched, and its virtual start time
        self.dispatch_r = self.latest_s = 0.0
        self._clock = clock
        self._r = 0.0
        self._since = clock()
        self._active = 0
        self._enqueued = 0
        self._robin = -1
        self._nonempty: set[Queue] = set()
        self._held: Counter[tuple[int, ...]] = Counter()  # seats by flow
        self.configure(queuing, limit)

    @property
    def idle(self) -> bool:
        """Whether there are neither queued nor executing requests."""
        return not self.waiting and not self.executing

    @property
    def _most_of_a_flow(self) -> int:
        return self.limit - self.limit // _LEFT_TO_OTHERS

    def configure(self, queuing: Queuing, limit: int) -> None:
        """Change the queue settings and the limit of seats, and dispatch requests that now fit.

        Surplus queues are removed once they are empty.
        """
        self._advance()
        self.utilization.aggregate(self.limits)
        self.queuing = queuing
        self.limit = limit
        self.queues += [Queue(index) for index in range(len(self.queues), queuing.queues)]
        self._drop_unwanted()
        self._dispatch()

    def results(self) -> Results:
        """Return the statistics of the seats that queued and executing requests demanded since the last call."""
        self._advance()
        return self.utilization.demand(self.limits)

    # Requests

    def start(
        self,
        estimate: Estimate,
        hand: tuple[int, ...],
        labels: tuple[str, str],
        distinguisher: str,
        user: UserInfo,
        info: RequestInfo,
    ) -> Ticket | None:
        """Return the ticket of a new request, or None if the request is rejected.

        If the ticket's `decision` is None, the request executes. Otherwise await `wait`. Call `finish` when it has
        ended.

        Args:
            estimate: the seats of the request.
            hand: the indexes of the queues from which the flow may choose; empty for a level without queues.
            labels: the priority level and the flow schema, for metrics.
            distinguisher: the flow distinguisher, for the debug endpoints.
            user: the user of the request, for the debug endpoints.
            info: the request info, for the debug endpoints.
        """
        now = self._advance()
        ticket = Ticket(estimate, labels, distinguisher, user, info, now, self._r)
        if self.queuing.queues < 1:
            if not self._fits(ticket.seats):
                self._reject(labels, "concurrency-limit")
                return None
            self.queueless.add(ticket)
            self._execute(ticket, now)
            return ticket
        queue = self._choose(hand)
        must_queue = self.seats_in_use >= self.limit or self._held[hand] >= self._most_of_a_flow
        if must_queue and len(queue.waiting) >= self.queuing.length_limit:
            self._reject(labels, "queue-full")
            return None
        ticket.hand = hand
        self._enqueue(ticket, queue)
        self._dispatch()
        if ticket.waits:
            ticket.decision = asyncio.get_running_loop().create_future()
        return ticket

    async def wait(self, ticket: Ticket, seconds: float) -> bool:
        """Wait until the request of a ticket executes, and return True.

        Return False if it was rejected after `seconds`.

        A rejected or cancelled ticket needs no `finish`.
        """
        if ticket.decision is None:
            return True
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await ticket.decision
        except TimeoutError:
            if ticket.waits:
                self._leave(ticket)
                return False
        except asyncio.CancelledError:
            if ticket.waits:
                self._leave(ticket)
            else:
                self.finish(ticket)
            raise
        return True

    def finish(self, ticket: Ticket) -> float:
        """End an executing request and return the seconds for which it executed.

        Its seats become free at once, or after the time that the estimate lets it linger.
        """
        now = self._advance()
        self.executing -= 1
        queue = ticket.queue
        if queue is None:
            self.queueless.discard(ticket)
        else:
            queue.end(ticket, now)
            self._bound(queue)
            if not queue.active:
                self._active -= 1
        if ticket.estimate.linger > 0:
            self.lingering[ticket.labels] += ticket.seats
            asyncio.get_running_loop().call_later(ticket.estimate.linger, self._lingered, ticket)
        else:
            self._release(ticket)
        self._dispatch()
        return now - ticket.started

    def _lingered(self, ticket: Ticket) -> None:
        self._advance()
        self.lingering[ticket.labels] -= ticket.seats
        self._release(ticket)
        self._dispatch()

    @property
    def limits(self) -> Limits:
        """The limits to which the utilization metrics are relative."""
        return Limits(self.nominal, self.limit, max(self.queuing.queues, 0) * self.queuing.length_limit)

    # --- virtual time

    @property
    def r(self) -> float:
        """The virtual time R at the last change."""
        return self._r

    def next_s(self) -> tuple[list[float], list[float]]:
        """Return two lists with the virtual start time of the oldest request of each nonempty queue.

        The first list counts executing requests by their estimated duration, the second by their duration so far.
        """
        waiting = [queue for queue in self.queues if queue.waiting]
        return [queue.next_r for queue in waiting], [queue.served(self._since) for queue in waiting]

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

    def _bound(self, queue: Queue) -> None:
        """Prevent an underused queue from accumulating credit.

        The virtual dispatch time of its oldest request becomes at least that of the request's arrival.
        """
        if queue.waiting:
            queue.next_r += max(0.0, queue.waiting[0].arrival_r - queue.served(self._since))

    # Dispatching

    def _choose(self, hand: tuple[int, ...]) -> Queue:
        """Return the queue with the least queued work among the queues with the indexes in `hand`.

        Each call begins its search at another queue, which wins if several have equal work.
        """
        offset = self._enqueued % len(hand)
        self._enqueued += 1
        best, least = self.queues[hand[offset]], -1.0
        if not self.waiting:
            return best
        for card in (*hand[offset:], *hand[:offset]):
            queue = self.queues[card]
            if least < 0 or queue.work < least:
                best, least = queue, queue.work
        return best

    def tickets(self) -> Iterator[Ticket]:
        """Yield the tickets of all queued and executing requests."""
        yield from self.queueless
        for queue in self.queues:
            yield from queue.waiting
            yield from queue.executing

    def _enqueue(self, ticket: Ticket, queue: Queue) -> None:
        if not queue.active:
            queue.next_r = self._r
            self._active += 1
        ticket.queue = queue
        queue.push(ticket)
        self._nonempty.add(queue)
        self._bound(queue)
        self._count_waiting(ticket, 1)
        metrics.QUEUE_LENGTH.observe(ticket.labels, len(queue.waiting))

    def _count_waiting(self, ticket: Ticket, by: int) -> None:
        seats = ticket.seats * by
        self.waiting += by
        self.seats_waiting += seats

    def _dispatch(self) -> None:
        while self.waiting and self.seats_in_use < self.limit:
            queue = self._next()
            if queue is None:
                return
            ticket = queue.waiting[0]
            if not self._fits(ticket.seats):
                metrics.NO_ACCOMMODATION.add(ticket.labels)
                return
            self._robin = queue.index
            queue.waiting.popleft()
            self._account_departure(queue, ticket)
            self._held[ticket.hand] += ticket.seats
            self.dispatch_r, self.latest_s = self._r, queue.next_r
            queue.begin(ticket, self._since)
            self._execute(ticket, self._since)
            self._bound(queue)

    def _account_departure(self, queue: Queue, ticket: Ticket) -> None:
        """Subtract a queued request from `waiting`, `seats_waiting` and the work of its queue.

        The caller has removed `ticket` from `queue.waiting` before.
        """
        queue.remove(ticket)
        if not queue.waiting:
            self._nonempty.discard(queue)
        self._count_waiting(ticket, -1)

    def _next(self) -> Queue | None:
        """Return the queue whose oldest request would finish first in virtual time, or None if all must wait.

        A queue is skipped if the flow of its oldest request has seats already and would, with this request, hold more
        than one flow may hold. On ties, queues after the last dispatched one go first.
        """
        count, start, now, held = len(self.queues), self._robin + 1, self._since, self._held
        most = self._most_of_a_flow
        waiting = (
            q for q in self._nonempty if (has := held[q.waiting[0].hand]) == 0 or has + q.waiting[0].seats <= most
        )
        return min(waiting, key=lambda q: (q.served(now) + q.waiting[0].work, (q.index - start) % count), default=None)

    def _fits(self, seats: int) -> bool:
        if self.queuing.queues < 0:
            return True
        if seats > self.limit:
            return self.executing == 0
        return self.seats_in_use + seats <= self.limit

    def _execute(self, ticket: Ticket, now: float) -> None:
        seats = ticket.seats
        ticket.started = now
        self.executing += 1
        self.dispatched[ticket.labels] += 1
        self.seats_in_use += seats
        if ticket.decision is not None and not ticket.decision.done():
            ticket.decision.set_result(None)

    def _release(self, ticket: Ticket) -> None:
        seats = ticket.seats
        self.seats_in_use -= seats
        if ticket.queue is not None:
            ticket.queue.seats -= seats
            self._held[ticket.hand] -= seats
            if self._held[ticket.hand] <= 0:
                del self._held[ticket.hand]
            self._drop_unwanted()

    def _leave(self, ticket: Ticket) -> None:
        self._advance()
        queue = ticket.queue
        if queue is None:
            raise ValueError("a ticket without a queue does not wait")
        queue.waiting.remove(ticket)
        self._account_departure(queue, ticket)
        if not queue.active:
            self._active -= 1
        self._bound(queue)
        self.rejected += 1
        self.cancelled += 1
        metrics.REJECTED.add((*ticket.labels, "time-out"))

    def _reject(self, labels: tuple[str, str], reason: str) -> None:
        self.rejected += 1
        metrics.REJECTED.add((*labels, reason))

    def _drop_unwanted(self) -> None:
        """Remove empty queues from the end of the list, down to the configured number.

        It stops at the first queue that is in use, so the remaining ones keep their index.
        """
        while (
            len(self.queues) > max(self.queuing.queues, 0) and not self.queues[-1].active and not self.queues[-1].seats
        ):
            self.queues.pop()
