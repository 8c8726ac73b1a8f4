"""`QueueSet`: the queues of one priority level.

Requests are queued by flow and dispatched fairly, as long as there are free seats. `queue.py` is one of the queues,
`occupancy.py` counts requests and seats.

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
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from tetrapod.generic.flowcontrol import metrics
from tetrapod.generic.flowcontrol.occupancy import Occupancy
from tetrapod.generic.flowcontrol.queue import Queue, Queuing, Ticket
from tetrapod.generic.flowcontrol.work_estimator import Estimate
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

_LEFT_TO_OTHERS: Final = 8
"""One of this many seats is reserved for other flows."""


class QueueSet(Occupancy):
    """The queues of one priority level.

    Args:
        name: the name of the level.
        queuing: the queue settings.
        limit: the current limit of seats.
        clock: returns the current time in seconds.

    Attributes:
        queues: the queues; empty for a level without queues.
        queueless: the executing requests of a level without queues.
        dispatch_r: the virtual time at which the last request was dispatched.
        latest_s: the virtual start time of that request.
    """

    def __init__(self, name: str, queuing: Queuing, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name, queuing, limit, clock)
        self.queues: list[Queue] = []
        self.queueless: set[Ticket] = set()
        self.dispatch_r = self.latest_s = 0.0
        self._enqueued = 0
        self._robin = -1
        self._nonempty: set[Queue] = set()
        self._held: Counter[tuple[int, ...]] = Counter()  # seats by flow
        self.configure(queuing, limit)

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

    def tickets(self) -> Iterator[Ticket]:
        """Yield the tickets of all queued and executing requests."""
        yield from self.queueless
        for queue in self.queues:
            yield from queue.waiting
            yield from queue.executing

    def next_s(self) -> tuple[list[float], list[float]]:
        """Return two lists with the virtual start time of the oldest request of each nonempty queue.

        The first list counts executing requests by their estimated duration, the second by their duration so far.
        """
        waiting = [queue for queue in self.queues if queue.waiting]
        return [queue.next_r for queue in waiting], [queue.served(self._since) for queue in waiting]

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

    def _enqueue(self, ticket: Ticket, queue: Queue) -> None:
        if not queue.active:
            queue.next_r = self._r
            self._active += 1
        ticket.queue = queue
        queue.push(ticket)
        self._nonempty.add(queue)
        self._bound(queue)
        self.waiting += 1
        self.seats_waiting += ticket.seats
        metrics.QUEUE_LENGTH.observe(ticket.labels, len(queue.waiting))

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
        self.waiting -= 1
        self.seats_waiting -= ticket.seats

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

    def _drop_unwanted(self) -> None:
        """Remove empty queues from the end of the list, down to the configured number.

        It stops at the first queue that is in use, so the remaining ones keep their index.
        """
        while (
            len(self.queues) > max(self.queuing.queues, 0) and not self.queues[-1].active and not self.queues[-1].seats
        ):
            self.queues.pop()
