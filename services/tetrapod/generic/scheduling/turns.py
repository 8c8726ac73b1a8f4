"""`Turns`: the requests that wait for the event loop, by flow, and the order in which flows are served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable


class Queue:
    """The waiting requests of one flow. Those that have started before go first, because they hold seats and memory.

    Each request is the future that `FairScheduler.wait` returned.
    """

    __slots__ = ("new", "started")

    def __init__(self) -> None:
        self.started: deque[asyncio.Future[None]] = deque()
        self.new: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self.started or self.new)

    def next(self) -> asyncio.Future[None]:
        """Remove the request whose turn it is, and return it. At least one must wait."""
        return (self.started or self.new).popleft()


class Turns:
    """The flows with waiting requests. Groups are served in turn, and the flows of each in turn.

    Args:
        group_of: returns the group of a flow.
    """

    def __init__(self, group_of: Callable[[Hashable], Hashable]) -> None:
        self._group_of = group_of
        self._queues: dict[Hashable, Queue] = {}  # by flow
        # By group, the flows that wait; both in the order in which they are served.
        self._flows: dict[Hashable, deque[Hashable]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __contains__(self, flow: Hashable) -> bool:
        return flow in self._queues

    def queue(self, flow: Hashable) -> Queue:
        """Return the queue of a flow. If it has none, its turn comes after those of all flows of its group."""
        queue = self._queues.get(flow)
        if queue is None:
            queue = Queue()
            self.put(flow, queue)
        return queue

    def put(self, flow: Hashable, queue: Queue) -> None:
        """Add a flow with its queue, after all flows of its group."""
        self._queues[flow] = queue
        self._flows.setdefault(self._group_of(flow), deque()).append(flow)

    def pop(self) -> tuple[Hashable, Queue]:
        """Remove the flow whose turn it is, and return it with its queue. At least one must wait."""
        group = next(iter(self._flows))
        flows = self._flows.pop(group)
        flow = flows.popleft()
        if flows:
            self._flows[group] = flows
        return flow, self._queues.pop(flow)
