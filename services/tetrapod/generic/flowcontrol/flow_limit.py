"""`FlowLimiter`: limits the recent requests of one flow that are in flight, while several flows are active.

The processes behind the aggregator share its CPUs: requests that one user has in flight there take CPU time from
everybody, however fairly each process schedules its own loop. In a single process, writes are in flight together, and
so is the work that follows their commit. While several flows are active, each has therefore only a few *recent*
requests in flight: enough to keep a pipeline busy, and fewer where CPUs are scarce. A request that takes longer than
its work would is waiting for something other than a CPU, and is no longer counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from tetrapod.generic.http.request import Response, StreamResponse, StreamWriter
from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling

READ, WRITE, MANY = 1, 2, 4
"""The weight of a request that reads one object, changes one, or concerns many."""


def forwarded_weight(verb: str) -> int:
    """Return the weight, for `FlowLimiter`, of a request with this verb that is forwarded to another process.

    It is 1 for a get, 4 for a list, watch or deletecollection, and 2 for any other verb.
    """
    if verb == "get":
        return READ
    return MANY if verb in ("list", "watch", "deletecollection") else WRITE


def local_weight(verb: str) -> int:
    """Return the weight, for `FlowLimiter`, of a request with this verb that is served in this process.

    It is 0 (not limited) for a get, list or watch, and 1 for any other verb.
    """
    return 0 if verb in ("get", "list", "watch") else READ


class InFlight:
    """A request that has been in flight since `since` (of time.monotonic()).

    `flow` identifies its flow, and `weight` is what it counts towards the limit.
    """

    __slots__ = ("flow", "since", "weight")

    def __init__(self, flow: Hashable, since: float, weight: int) -> None:
        self.flow = flow
        self.since = since
        self.weight = weight


_UNCOUNTED: Final = InFlight(None, 0.0, 0)


class FlowLimiter:
    """Limits the requests in flight of each flow while several flows are active, by the sum of their weights.

    A request counts only while it is recent: for `FairScheduling.recent` seconds for each unit of its weight. After
    that it is assumed to wait for something other than a CPU. A request calls `enter`, and `wait` if the result was
    None. When it has ended, it calls `leave`.
    """

    def __init__(
        self,
        shared: Callable[[], bool],
        cpu_scarce: Callable[[], bool],
        config: FairScheduling = DEFAULT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a limiter.

        Args:
            shared: returns whether several flows are active. While they are not, nothing is limited.
            cpu_scarce: returns whether the process has to wait for a CPU.
            config: the settings.
            now: returns the time in seconds.
        """
        self._shared = shared
        self._cpu_scarce = cpu_scarce
        self._config = config
        self._now = now
        self._recent: dict[Hashable, set[InFlight]] = {}  # by flow
        self._waiting: dict[Hashable, deque[tuple[asyncio.Future[InFlight], int]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, flow: Hashable, weight: int) -> InFlight | None:
        """Count a request of a flow and return the argument for `leave`. Return None if the request must `wait`.

        Args:
            flow: identifies the flow.
            weight: the result of `forwarded_weight` or `local_weight`.
        """
        if not self._waiting and not self._shared():
            self._recent.clear()
            return _UNCOUNTED
        if flow in self._waiting or not self._fits(flow, weight):
            return None
        return self._count(flow, weight)

    async def wait(self, flow: Hashable, weight: int) -> InFlight:
        """Wait until a request fits the limit of its flow, count it, and return the argument for `leave`.

        It waits without a timeout. A caller that is cancelled while it waits is not counted. The arguments are those of
        `enter`.
        """
        permission: asyncio.Future[InFlight] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow, deque()).append((permission, weight))
        self._schedule_start()
        return await permission

    def leave(self, request: InFlight) -> None:
        """Stop counting a request that has been answered. Further calls do nothing."""
        recent = self._recent.get(request.flow)
        if recent is not None and request in recent:
            recent.remove(request)
            if not recent:
                del self._recent[request.flow]
            if request.flow in self._waiting:
                self._wake(request.flow)

    def leave_after(self, response: Response, request: InFlight) -> None:
        """Call `leave` at the end of a stream, or at once for a response that is not streamed or is endless (a watch).

        Args:
            response: the response. For a stream that ends, its `run` is replaced by a function that also calls `leave`.
            request: the result of `enter` or `wait`.
        """
        if not isinstance(response, StreamResponse) or response.endless:
            self.leave(request)
            return
        run = response.run

        async def run_and_leave(writer: StreamWriter) -> None:
            try:
                await run(writer)
            finally:
                self.leave(request)

        response.run = run_and_leave

    def _count(self, flow: Hashable, weight: int) -> InFlight:
        request = InFlight(flow, self._now(), weight)
        self._recent.setdefault(flow, set()).add(request)
        return request

    def _fits(self, flow: Hashable, weight: int) -> bool:
        recent = self._recent.get(flow)
        if not recent:
            return True
        now, config = self._now(), self._config
        recent -= {request for request in recent if request.since + request.weight * config.recent < now}
        limit = config.in_flight_scarce if self._cpu_scarce() else config.in_flight
        return not recent or sum(request.weight for request in recent) + weight <= limit

    def _wake(self, flow: Hashable) -> None:
        waiting = self._waiting[flow]
        limited = self._shared()
        while waiting and (not limited or self._fits(flow, waiting[0][1])):
            permission, weight = waiting.popleft()
            if not permission.done():  # otherwise the request was cancelled
                permission.set_result(self._count(flow, weight))
        if not waiting:
            del self._waiting[flow]

    def _schedule_start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._config.recent / 2, self._start_waiting)

    def _start_waiting(self) -> None:
        """Let waiting requests continue that fit the limit now, because earlier ones of their flow no longer count.

        A timer calls this as long as requests wait.
        """
        self._timer = None
        for flow in list(self._waiting):
            self._wake(flow)
        if self._waiting:
            self._schedule_start()
