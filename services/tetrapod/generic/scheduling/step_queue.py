"""`StepQueue`: long work of many connections, of which a part runs in each step of the event loop.

A connection whose received bytes take long to parse parses a part of them and adds the rest to a queue. A watch does
the same with the rest of a large event. However many connections do so, a step of the loop holds one part or a few
short ones, and other clients are served between two steps.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

SHARE: Final = 0.5
"""The time of a step as a share of that of other work, so that the queue gets a third of the time of a busy loop."""


class StepQueue:
    """A queue of functions, each a part of long work, of which the event loop calls one or a few in each step.

    With one part in each step, the queue gets little of the loop's time if other work takes long. After a pause of the
    loop, hundreds of connections have parts to parse. A connection with many requests waits for all others before each
    of them.

    Args:
        longest: seconds of a step. A step continues with the next parts for half as long (`SHARE`) as the loop's other
            work took since the last step, at most this long. 0 calls one part in each step, for parts that only begin
            work.
        clock: returns the time in seconds.
    """

    def __init__(self, longest: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self._longest = longest
        self._clock = clock
        self._due: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self._last_ended = 0.0  # by the clock: the last step, or else the call of `add` that scheduled the first one

    def __bool__(self) -> bool:
        """Return whether a function is queued."""
        return bool(self._due)

    def add(self, loop: asyncio.AbstractEventLoop, part: Callable[[], None]) -> None:
        """Call `part` in a later step of the loop, after the functions that are queued already."""
        self._due.append(part)
        if not self._scheduled:
            self._schedule(loop)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = True
        self._last_ended = self._clock()
        loop.call_soon(self._step, loop)

    def _step(self, loop: asyncio.AbstractEventLoop) -> None:
        began = self._clock()
        ends = began + min(SHARE * (began - self._last_ended), self._longest)
        try:
            self._due.popleft()()
            while self._due and self._clock() < ends:
                self._due.popleft()()
        finally:
            self._scheduled = False
            if self._due:
                self._schedule(loop)
