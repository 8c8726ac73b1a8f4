"""Polling helpers: tests wait for a condition, never for a fixed time.

`eventually` is the counterpart of `until` for coroutines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def until(
    get: Callable[[], T],
    condition: Callable[[T], object] = bool,
    *,
    timeout: float = 60,
    description: str = "condition",
) -> T:
    """Call `get` until `condition` is true of its result, and return that result.

    It polls, because changes in other processes and threads cause no notification.

    Args:
        timeout: in seconds.
        description: names what is waited for in the error message.

    Raises:
        AssertionError: with the last result, after `timeout`.
    """
    deadline = time.monotonic() + timeout
    while not condition(value := get()):
        assert time.monotonic() < deadline, _message(description, timeout, value)
        time.sleep(0.02)
    return value


async def eventually(
    get: Callable[[], Awaitable[T]],
    condition: Callable[[T], object] = bool,
    *,
    timeout: float = 20,
    description: str = "condition",
) -> T:
    """Await `get` until `condition` is true of its result, and return it.

    Sleeps between two calls; raises as `until` does.
    """
    deadline = time.monotonic() + timeout
    while not condition(value := await get()):
        assert time.monotonic() < deadline, _message(description, timeout, value)
        await asyncio.sleep(0.01)
    return value


def _message(description: str, timeout: float, value: object) -> str:
    return f"{description}: not met after {timeout} s; last value: {str(value)[:3000]}"
