"""The queues of one priority level: requests wait by flow and are dispatched fairly, as many at a time as there are seats.

Upstream: flowcontrol/fairqueuing/queueset (its doc.go explains the virtual time). Here everything happens on the event loop, so nothing is
locked; the progress meter R is a float, which needs no epochs; what makes R's rate is kept as sums rather than counted at each step; and
gauges are made of the tickets when somebody asks for them. Upstream corrects its guess of how long a request lasts when that ends; until
then a flood of long ones seems to have had less than its share, and others wait (measured: 30 ms where each lasted 45). Here what is
under way counts as it goes on; and no flow has the last eighth of a level's seats, since those of a flood are given back by the dozen.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.flowcontrol import meters
from tetrapod.generic.flowcontrol.integrator import Results
from tetrapod.generic.flowcontrol.utilization import Limits, Utilization
from tetrapod.generic.flowcontrol.work import Estimate
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.requestinfo import RequestInfo

_LEFT_TO_OTHERS: Final = 8
"""One seat of so many."""
_SERVICE_SECONDS: Final = 0.003
"""What a request is taken to last until it has lasted (estimatedServiceDuration)."""


@dataclass(frozen=True, slots=True)
class Queuing:
    """`queues` is 0 where a request beyond the limit is refused at once, -1 where there is no limit."""

    queues: int
    length_limit: int = 0
    hand_size: int = 0


class Ticket:
    """A request at a priority level: waiting, or executing and holding seats until it is given back."""

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
        self.labels = labels  # of metrics: priority level, flow schema
        self.distinguisher = distinguisher
        self.user = user
        self.info = info
        self.arrival = now
        self.arrival_r = arrival_r
        self.started = -1.0  # of the clock; below zero while it waits
        self.work = estimate.initial * _SERVICE_SECONDS + estimate.final * estimate.linger
        self.hand: tuple[int, ...] = ()  # by which its flow is known here
        self.queue: Queue | None = None
        self.decision: asyncio.Future[None] | None = None  # done when it may execute; None when it never had to wait

    @property
    def waits(self) -> bool:
        return self.started < 0


class Queue:
    __slots__ = ("began", "executing", "index", "next_r", "running", "seats", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.executing: set[Ticket] = set()
        self.seats = 0
        self.next_r = 0.0  # R at which its next request is dispatched, were all served in turns of no length
        self.work = 0.0  # of those that wait
        self.running = 0  # initial seats of those that execute
        self.began = 0.0  # the sum of when they began, by seat

    @property
    def active(self) -> bool:
        return bool(self.waiting or self.executing)

    def served(self, now: float) -> float:
        """`next_r` by what those that execute have taken until now, not by what they were taken to last."""
        return self.next_r + self.running * (now - _SERVICE_SECONDS) - self.began

    def push(self, ticket: Ticket) -> None:
        self.waiting.append(ticket)
        self.work += ticket.work

    def left(self, ticket: Ticket) -> None:
        """One of those that waited does no more, and is out of the queue."""
        self.work = self.work - ticket.work if self.waiting else 0.0

    def begin(self, ticket: Ticket, now: float) -> None:
        self.executing.add(ticket)
        self.seats += ticket.seats
        self.next_r += ticket.work
        self.running += ticket.estimate.initial
        self.began += ticket.estimate.initial * now

    def end(self, ticket: Ticket, now: float) -> None:
        self.executing.discard(ticket)
        self.next_r -= ticket.estimate.initial * (_SERVICE_SECONDS - (now - ticket.started))
        self.running -= ticket.estimate.initial
        self.began = self.began - ticket.estimate.initial * ticket.started if self.running else 0.0


class QueueSet:
    def __init__(self, name: str, queuing: Queuing, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.queuing = queuing
        self.limit = limit
        self.queues: list[Queue] = []
        self.queueless: set[Ticket] = set()  # executing where there are no queues
        self.waiting = self.executing = 0
        self.seats_waiting = self.seats_in_use = 0
        self.rejected = self.timed_out = self.cancelled = 0
        self.dispatched: Counter[tuple[str, str]] = Counter()  # by the labels of metrics
        self.lingering: Counter[tuple[str, str]] = Counter()  # seats
        self.utilization = Utilization()
        self.nominal = limit
        self.dispatch_r = self.latest_s = 0.0  # of what was dispatched last: the time, and when it begins, both virtual
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
        return not self.waiting and not self.executing

    @property
    def _most_of_a_flow(self) -> int:
        return self.limit - self.limit // _LEFT_TO_OTHERS

    def configure(self, queuing: Queuing, limit: int) -> None:
        """Change how many queues and seats there are; queues too many go when they are empty."""
        self._advance()
        self.utilization.settle(self.limits)
        self.queuing = queuing
        self.limit = limit
        self.queues += [Queue(index) for index in range(len(self.queues), queuing.queues)]
        self._drop_unwanted()
        self._dispatch()

    def results(self) -> Results:
        """The demand for seats since this was last asked."""
        self._advance()
        return self.utilization.demand(self.limits)

    # --- the life of a request

    def start(
        self, estimate: Estimate, hand: tuple[int, ...], labels: tuple[str, str], distinguisher: str, user: UserInfo, info: RequestInfo
    ) -> Ticket | None:
        """A ticket that executes, or one that waits (see `wait`); None is a refusal."""
        now = self._advance()
        ticket = Ticket(estimate, labels, distinguisher, user, info, now, self._r)
        if self.queuing.queues < 1:
            if not self._fits(estimate.seats):
                self._reject(labels, "concurrency-limit")
                return None
            self.queueless.add(ticket)
            self._execute(ticket, now)
            return ticket
        queue = self._choose(hand)
        taken = self.seats_in_use >= self.limit or self._held[hand] >= self._most_of_a_flow
        if taken and len(queue.waiting) >= self.queuing.length_limit:
            self._reject(labels, "queue-full")
            return None
        ticket.hand = hand
        self._enqueue(ticket, queue)
        self._dispatch()
        if ticket.waits:
            ticket.decision = asyncio.get_running_loop().create_future()
        return ticket

    async def wait(self, ticket: Ticket, seconds: float) -> bool:
        """Wait until a ticket executes; false when it was not its turn in time."""
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
        """Give a ticket back; its seats are free at once, or after it has lingered. Returns the seconds for which it executed."""
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
        return Limits(self.nominal, self.limit, max(self.queuing.queues, 0) * self.queuing.length_limit)

    # --- virtual time

    @property
    def r(self) -> float:
        """The virtual time of the last change."""
        return self._r

    def next_s(self) -> tuple[list[float], list[float]]:
        """When the oldest of each queue that has one is to begin, in virtual time; and that less the work in progress before it."""
        waiting = [queue for queue in self.queues if queue.waiting]
        return [queue.next_r for queue in waiting], [queue.served(self._since) for queue in waiting]

    def _advance(self) -> float:
        """R has grown, since anything last changed, as fast as each active queue was served on average."""
        now = self._clock()
        elapsed = now - self._since
        state = (self.waiting, self.executing, self.seats_waiting, self.seats_in_use)
        if not self.utilization.spend(state, elapsed):
            self.utilization.settle(self.limits)
        if self._active:
            self._r += self.seats_in_use / self._active * elapsed
        self._since = now
        return now

    def _bound(self, queue: Queue) -> None:
        """A queue that leaves seats unused saves none up: nothing is dispatched, in virtual time, before it came."""
        if queue.waiting:
            queue.next_r += max(0.0, queue.waiting[0].arrival_r - queue.served(self._since))

    # --- steps

    def _choose(self, hand: tuple[int, ...]) -> Queue:
        """The queue of the hand with the least work waiting; the search begins at another card each time."""
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
        """All that wait or execute."""
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
        meters.QUEUE_LENGTH.observe(ticket.labels, len(queue.waiting))

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
                meters.NO_ACCOMMODATION.add(ticket.labels)
                return
            self._robin = queue.index
            queue.waiting.popleft()
            self._left(queue, ticket)
            self._held[ticket.hand] += ticket.seats
            self.dispatch_r, self.latest_s = self._r, queue.next_r
            queue.begin(ticket, self._since)
            self._execute(ticket, self._since)
            self._bound(queue)

    def _left(self, queue: Queue, ticket: Ticket) -> None:
        """A ticket is out of its queue."""
        queue.left(ticket)
        if not queue.waiting:
            self._nonempty.discard(queue)
        self._count_waiting(ticket, -1)

    def _next(self) -> Queue | None:
        """The queue whose oldest request would be finished first; the one dispatched last is asked last. None: all are to wait."""
        count, start, now, held = len(self.queues), self._robin + 1, self._since, self._held
        most = self._most_of_a_flow
        waiting = (q for q in self._nonempty if (has := held[q.waiting[0].hand]) == 0 or has + q.waiting[0].seats <= most)
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
        self._left(queue, ticket)
        if not queue.active:
            self._active -= 1
        self._bound(queue)
        self.rejected += 1
        self.cancelled += 1
        meters.REJECTED.add((*ticket.labels, "time-out"))

    def _reject(self, labels: tuple[str, str], reason: str) -> None:
        self.rejected += 1
        meters.REJECTED.add((*labels, reason))

    def _drop_unwanted(self) -> None:
        """Queues beyond the wanted number go from the end, as they become empty: those that remain keep their index."""
        while len(self.queues) > max(self.queuing.queues, 0) and not self.queues[-1].active and not self.queues[-1].seats:
            self.queues.pop()
