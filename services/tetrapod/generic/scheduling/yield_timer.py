"""`YieldTimer`: divides a long computation of the event loop into short steps."""

from __future__ import annotations

import asyncio
import time
from typing import Final

_STEP_SECONDS: Final = 0.005


class YieldTimer:
    """A timer by which a long computation returns to the event loop every few milliseconds.

    Args:
        seconds: the longest step between two returns.
    """

    __slots__ = ("_seconds", "_step_ends")

    def __init__(self, seconds: float = _STEP_SECONDS) -> None:
        self._seconds = seconds
        self._step_ends = time.perf_counter() + seconds

    async def yield_if_due(self) -> None:
        """Let other tasks run if the computation has run for `seconds` since it last did so."""
        if time.perf_counter() >= self._step_ends:
            await asyncio.sleep(0)
            self._step_ends = time.perf_counter() + self._seconds
