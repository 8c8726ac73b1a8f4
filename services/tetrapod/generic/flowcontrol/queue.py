"""`Queue`: one queue of a priority level, the settings of such queues, and the requests in them.

A queue keeps the virtual time at which its next request is due. `queueset.py` compares the queues of a level by it.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/types.go, request and queue
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.flowcontrol.work_estimator import Estimate
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

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
        self.labels = labels
        self.distinguisher = distinguisher
        self.user = user
        self.info = info
        self.arrival = now
        self.arrival_r = arrival_r
        self.started = -1.0
        self.work = estimate.initial * _SERVICE_SECONDS + estimate.final * estimate.linger
        self.hand: tuple[int, ...] = ()
        self.queue: Queue | None = None
        self.decision: asyncio.Future[None] | None = None

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
        self.next_r = 0.0
        self.work = 0.0
        self.running = 0
        self.began = 0.0

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
