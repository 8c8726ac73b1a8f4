"""`FairScheduler`: decides which request the event loop serves next, so that one user does not delay all others.

A flow is the key of the requests that are served in turn, such as their user. Seats (API priority and fairness) limit
how many requests execute, but all of them share the time of one thread. An event loop serves them in the order of
arrival: after a user with a hundred connections everybody would wait for a hundred requests. The scheduler therefore
starts only as many requests in one step of the loop as fit its time, and serves the flows with waiting requests round
robin. Flows belong to groups, such as priority levels, and the groups are served round robin too: a controller manager
is one flow, and needs more than one turn for every turn of five hundred kubelets. A flow that has no waiting request
and was not served in this step need not wait.

Turns are for floods. A busy loop has few steps, because other work, such as the delivery of events, takes most of each.
A flow that gets one turn in each is slow then. Light flows, whose requests have taken little of the loop's time lately,
therefore precede the others and get several starts in a step. All kubelets and controllers of a cluster are light
until the loop is overloaded.

A request that has waited for something (its write is on disk, a webhook has answered) is scheduled again for the rest
of its work. In kube-apiserver Go's scheduler shares the CPUs between goroutines.
"""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import Callable, Coroutine, Generator, Hashable
from typing import Any, TypeVar

from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.scheduling.turns import Turns

T = TypeVar("T")


class FairScheduler:
    """The scheduler of one event loop. A step is one iteration of the loop, in which a limited number of requests run.

    Before each part of its work, a request calls `try_start`, or else awaits `wait`.

    Attributes:
        now: returns the wall time in seconds.
    """

    def __init__(
        self,
        config: FairScheduling = DEFAULT,
        clock: Callable[[], float] = time.thread_time,
        now: Callable[[], float] = time.monotonic,
        is_background: Callable[[Hashable], bool] = lambda _: False,
        group_of: Callable[[Hashable], Hashable] = lambda _: None,
    ) -> None:
        """Create a scheduler for the running loop.

        Args:
            config: the settings; `enabled=False` lets every request start at once.
            clock: returns the CPU time of this thread in seconds, with which the cost of a step is measured.
            now: returns the wall time in seconds.
            is_background: returns whether a flow is that of a service. Such flows send a few requests a second, and
                must not shorten the steps of a lone user. They are served fairly, like all others.
            group_of: returns the group of a flow. By default all flows are in one group.
        """
        self._config = config
        self._disabled = not config.enabled
        self._is_background = is_background
        self._clock = clock
        self.now = now
        self._loop: asyncio.AbstractEventLoop | None = None  # until Python 3.12, asking for it is a system call
        self._light, self._others = Turns(group_of), Turns(group_of)  # a flow is in one of them
        self._used: dict[Hashable, float] = {}  # by flow, seconds of the loop's time in this window
        self._used_before: dict[Hashable, float] = {}  # in the window before
        self._window_ends = 0.0  # by `now`
        self._part = 0.0  # the decaying mean of what a part of a request takes, in seconds
        self._served: dict[Hashable, int] = {}  # by flow, the starts in this step
        self._stepping = False
        self._step_began = 0.0  # by `clock`
        self._step_began_at = 0.0  # by `now`
        self._starts = 0  # in this step
        self._most = config.first_starts
        self._most_light = self._most
        self._most_spare = self._most + config.spare_starts
        self._cpu = self._wall = 0.0  # seconds of past steps, decaying
        self._last: Hashable = None  # the flow that started last, or asked to
        self._shared_until = 0.0
        self._contended_until = 0.0

    def contended(self) -> bool:
        """Return whether several flows are active, and a request had to wait within the last 100 ms."""
        return self.now() < min(self._contended_until, self._shared_until)

    def shared(self) -> bool:
        """Return whether several flows are active.

        They are if requests of two flows came one after the other within the last second. Background flows do not
        count.
        """
        return self.now() < self._shared_until

    def cpu_scarce(self) -> bool:
        """Return whether recent steps of the loop got less CPU time than the share `enough_cpu` of their wall time."""
        return self._cpu < self._config.enough_cpu * self._wall

    def try_start(self, flow: Hashable) -> bool:
        """Return True if a request of `flow` may run now. It then counts as one of the requests of this step.

        Otherwise return False; the caller must await `wait`.
        """
        if self._disabled:
            return True
        if flow != self._last and not self._is_background(flow):
            self._last = flow
            self._shared_until = self.now() + self._config.shared_for
        served = self._served.get(flow, 0)
        if self._starts >= self._most or self._others or self._light:
            if flow in self._others or flow in self._light:
                return False
            if (served or self._starts >= self._most_spare) and not (
                served < self._config.light_starts and self._starts < self._most_light and self._is_light(flow)
            ):
                return False
        self._served[flow] = served + 1
        self._starts += 1
        if not self._stepping:
            self._stepping = True
            self._next_step(self._clock())
        return True

    def wait(self, flow: Hashable, *, started: bool = False) -> asyncio.Future[None]:
        """Return a future that completes when a request of `flow` may run.

        Call it only after `try_start` has returned False, without an await in between. The number of waiting requests
        is not limited.

        To give up, cancel the future. When the request has run, nothing need be released: the scheduler only counts how
        many requests start in each iteration of the event loop.

        Args:
            flow: the flow.
            started: whether the request has done some of its work already. It then precedes the flow's new requests.
        """
        self._contended_until = self.now() + self._config.contended_for
        permission: asyncio.Future[None] = self._running_loop().create_future()
        light = flow not in self._others and (flow in self._light or self._is_light(flow))
        queue = (self._light if light else self._others).queue(flow)
        (queue.started if started else queue.new).append(permission)
        return permission

    def charge(self, flow: Hashable, began: float) -> None:
        """Count the time of the loop that a request of a flow has taken without a pause since `began` (of `now`)."""
        now = self.now()
        seconds = now - began
        if now >= self._window_ends:
            self._used_before = self._used if now < self._window_ends + self._config.window else {}
            self._used = {}
            self._window_ends = now + self._config.window
        self._used[flow] = self._used.get(flow, 0.0) + seconds
        self._part += (seconds - self._part) * (1.0 - self._config.kept)

    def _is_light(self, flow: Hashable) -> bool:
        """Return whether the requests of a flow have taken less than `FairScheduling.light` seconds lately."""
        return self._used.get(flow, 0.0) + self._used_before.get(flow, 0.0) < self._config.light

    @types.coroutine
    def run(self, flow: Hashable, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await `work`, the handling of a request, and return its result.

        Call it after `flow` has been permitted to run the request. Each time `work` has waited for something, it is
        scheduled again as a request of `flow`.
        """
        if self._disabled:
            unscheduled: T = yield from work
            return unscheduled
        # A list that is emptied: a variable would form a reference cycle with the traceback of its error.
        failures: list[BaseException] = []
        while True:
            began = self.now()
            try:
                awaited = work.throw(failures.pop()) if failures else work.send(None)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.charge(flow, began)
            try:
                yield awaited
                if not self.try_start(flow):
                    yield from self.wait(flow, started=True)
            except BaseException as error:  # the awaited operation failed, or the task is cancelled
                failures.append(error)

    def _next_step(self, cpu: float) -> None:
        """Begin a step. `cpu` is the present reading of the clock, which is a system call of 0.5 to 2 µs."""
        self._step_began = cpu
        self._step_began_at = self.now()
        self._running_loop().call_soon(self._step)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _step(self) -> None:
        """End one step of the loop and begin the next, in which a limited number of waiting requests run.

        `_adapt` sets that number. It is called once in each step while there are requests.
        """
        cpu = self._clock()
        self._adapt(cpu - self._step_began)
        self._starts = 0
        self._served.clear()
        self._serve_light()
        self._serve_others()
        self._stepping = self._starts > 0
        if self._stepping:
            self._next_step(cpu)

    def _serve_light(self) -> None:
        """Let waiting requests of light flows run, and move flows that are light no more to the others."""
        turns = self._light
        while turns and self._starts < self._most_light:
            flow, queue = turns.pop()
            if not self._is_light(flow):
                self._others.put(flow, queue)
                continue
            self._permit(flow, queue.next())
            if queue:
                turns.put(flow, queue)
                if self._served.get(flow, 0) >= self._config.light_starts:
                    return

    def _serve_others(self) -> None:
        """Let waiting requests of the other flows run: at least as many as `_serve_light` did."""
        turns, most = self._others, max(self._most, 2 * self._starts)
        while turns and self._starts < most:
            flow, queue = turns.pop()
            self._permit(flow, queue.next())
            if queue:
                turns.put(flow, queue)

    def _permit(self, flow: Hashable, request: asyncio.Future[None]) -> None:
        if not request.done():  # otherwise it was cancelled
            request.set_result(None)
            self._served[flow] = self._served.get(flow, 0) + 1
            self._starts += 1

    def _adapt(self, cpu_seconds: float) -> None:
        """Set how many requests may run in the next step, from the CPU seconds that this one took.

        The number for light flows follows from what parts of requests take.
        """
        config = self._config
        self._cpu = config.kept * self._cpu + cpu_seconds
        self._wall = config.kept * self._wall + self.now() - self._step_began_at
        longest = config.shared_step if self.shared() else config.step
        if cpu_seconds > longest:
            self._most = max(1, self._most - 1 - self._most // 4)
        elif self._starts >= self._most and cpu_seconds * (self._starts + 1) < longest * self._starts:
            # one more would have fitted
            self._most = min(self._most + 1, config.most_starts)
        self._most_spare = self._most + config.spare_starts
        in_step = int(config.light_step / self._part) if self._part else config.most_starts
        self._most_light = max(self._most, min(in_step, config.most_starts))
