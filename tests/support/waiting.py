"""Polling helpers: tests wait for a condition, never for a fixed time. `eventually` is the counterpart of `until` for coroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], promise: Callable[[T], object] = bool, *, patience: float = 60, what: str = "it") -> T:
    """Call `look` until `promise` is true of its result, and return that result.

    It polls, because changes in other processes and threads cause no notification.

    Raises AssertionError with the last result after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not promise(found := look()):
        assert time.monotonic() < deadline, f"{what} did not come to hold in {patience} s; at last: {str(found)[:3000]}"
        time.sleep(0.02)
    return found


async def eventually(
    look: Callable[[], Awaitable[T]], promise: Callable[[T], object] = bool, *, patience: float = 20, what: str = "it"
) -> T:
    """Await `look` until `promise` is true of its result, and return it. Sleeps between two calls; raises as `until` does."""
    deadline = time.monotonic() + patience
    while not promise(found := await look()):
        assert time.monotonic() < deadline, f"{what} did not come to hold in {patience} s; at last: {str(found)[:3000]}"
        await asyncio.sleep(0.01)
    return found
