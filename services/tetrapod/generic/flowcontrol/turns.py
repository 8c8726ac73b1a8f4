"""`Turns`: whose request the event loop serves next, where more want it than it can serve at once.

Seats limit how many requests are under way; what they compete for here is one thread's time, and requests that have arrived are served in
the order in which they came, so that a user with a hundred connections makes everybody wait for a hundred requests. Of those that wait
for a turn each flow has one after the other, and only as many begin in one step of the loop as are served in about half a millisecond,
or half of that where others are there.
A flow that has nobody waiting, and had no turn just now, need not wait. A request that has waited for something (its write is on disk,
a webhook has answered) takes a turn for what is left to do. Upstream's goroutines get turns from Go's scheduler.
"""

from __future__ import annotations

import asyncio
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable
from typing import Any, Final, TypeVar

T = TypeVar("T")

STEP: Final = 0.0005
"""Seconds of CPU that one step of the loop may take; by the clock it may have taken longer because others had the CPU."""
SHORT: Final = 0.00025
"""The same in company: it is what somebody waits who has just come."""
MOST: Final = 32
SPARE: Final = 8
"""So many flows more may begin in a step that have just come: they are not to wait, but a hundred users are a flood too."""
ENOUGH: Final = 0.87
"""The part of a step's time by the clock that was time on a CPU, from which on there are CPUs for everybody."""
_KEPT: Final = 0.98
COMPANY: Final = 1.0
"""Seconds for which two flows that had a turn one after the other are in each other's way."""
CROWD: Final = 0.1
"""Seconds after somebody had to wait for which there is a crowd."""


class _Line:
    """Those of one flow who wait. Who has begun comes before who has not: he holds seats and memory."""

    __slots__ = ("begun", "new")

    def __init__(self) -> None:
        self.begun: deque[asyncio.Future[None]] = deque()
        self.new: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self.begun or self.new)

    def next(self) -> asyncio.Future[None]:
        return (self.begun or self.new).popleft()


class Turns:
    """`clock` measures what a step of the loop costs, `now` how long ago something was."""

    def __init__(self, clock: Callable[[], float] = time.thread_time, now: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._now = now
        self._waiting: dict[Hashable, _Line] = {}  # by flow, in the order of their turns
        self._served: set[Hashable] = set()  # who had a turn in this step
        self._stepping = False
        self._since = 0.0
        self._begun = 0  # in this step
        self._most = 8
        self._stepped_at = 0.0
        self._cpu = self._wall = 0.0  # seconds of steps, the later ones above all
        self._last: Hashable = None  # flow that took a turn or asked for one
        self._alone_from = 0.0  # two different ones are long enough ago then
        self._crowd_until = 0.0  # somebody had to wait, long enough ago then

    def crowded(self) -> bool:
        """Whether anybody had to wait just now, and others than himself are there."""
        return self._now() < min(self._crowd_until, self._alone_from)

    def in_company(self) -> bool:
        """Whether two flows had turns, or asked for them, one after the other just now."""
        return self._now() < self._alone_from

    def pressed(self) -> bool:
        """Whether steps lately had to wait for a CPU."""
        return self._cpu < ENOUGH * self._wall

    def taken(self, flow: Hashable) -> bool:
        """Take a turn that need not be waited for; false where there is none."""
        if flow != self._last:
            self._last = flow
            self._alone_from = self._now() + COMPANY
        if self._begun >= self._most or self._waiting:
            if flow in self._waiting or flow in self._served or self._begun >= self._most + SPARE:
                return False
            self._served.add(flow)
        elif not self._begun:
            self._served.add(flow)
        self._begun += 1
        if not self._stepping:
            self._stepping = True
            self._next_step()
        return True

    def wait(self, flow: Hashable, *, begun: bool = False) -> asyncio.Future[None]:
        """Done when it is the flow's turn."""
        self._crowd_until = self._now() + CROWD
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting.get(flow)
        if line is None:
            line = self._waiting[flow] = _Line()
        (line.begun if begun else line.new).append(turn)
        return turn

    @types.coroutine
    def each_step(self, flow: Hashable, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """What `work` returns; each time that it has waited for something, it goes on when it is the flow's turn."""
        failures: list[BaseException] = []  # not a variable: the traceback would lead to itself
        while True:
            try:
                awaited = work.throw(failures.pop()) if failures else work.send(None)
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                yield awaited
                if not self.taken(flow):
                    yield from self.wait(flow, begun=True)
            except BaseException as error:  # what it waited for has failed, or it is cancelled
                failures.append(error)

    def _next_step(self) -> None:
        self._since = self._clock()
        self._stepped_at = self._now()
        asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Called once in each step while there is something to do."""
        took = self._clock() - self._since
        self._cpu = _KEPT * self._cpu + took
        self._wall = _KEPT * self._wall + self._now() - self._stepped_at
        enough = SHORT if self.in_company() else STEP
        if took > enough:
            self._most = max(1, self._most - 1 - self._most // 4)
        elif self._begun >= self._most and took < enough / 2:
            self._most = min(self._most + 1, MOST)
        self._begun = 0
        self._served.clear()
        while self._waiting and self._begun < self._most:
            flow = next(iter(self._waiting))
            line = self._waiting.pop(flow)
            turn = line.next()
            if line:
                self._waiting[flow] = line
            if not turn.done():  # else who waited has gone
                turn.set_result(None)
                self._served.add(flow)
                self._begun += 1
        self._stepping = self._begun > 0
        if self._stepping:
            self._next_step()
