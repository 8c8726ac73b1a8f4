"""`StepQueue`: long work of many connections, of which one part runs in each step of the event loop.

A connection whose received bytes take long to parse parses a part of them and adds the rest to a queue. A watch does
the same with the rest of a large event. However many connections do so, a step of the loop holds one part, and other
clients are served between two parts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class StepQueue:
    """A queue of functions, each a part of long work, of which the event loop calls one in each step."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def __bool__(self) -> bool:
        """Return whether a function is queued."""
        return bool(self._due)

    def add(self, loop: asyncio.AbstractEventLoop, part: Callable[[], None]) -> None:
        """Call `part` in a later step of the loop, after the functions that are queued already."""
        self._due.append(part)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._step, loop)

    def _step(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._due.popleft()()
        finally:
            self._scheduled = bool(self._due)
            if self._scheduled:
                loop.call_soon(self._step, loop)
