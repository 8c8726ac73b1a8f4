"""`until`: tests wait for what they were promised, never for a time; `eventually` is its twin for coroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], promise: Callable[[T], object] = bool, *, patience: float = 60, what: str = "it") -> T:
    """What `look` returns once `promise` holds of it; looked at again and again, since other processes and threads tell nobody.

    Raises AssertionError after `patience` seconds, with what was seen at last.
    """
    deadline = time.monotonic() + patience
    while not promise(found := look()):
        assert time.monotonic() < deadline, f"{what} did not come to hold in {patience} s; at last: {str(found)[:3000]}"
        time.sleep(0.02)
    return found


async def eventually(
    look: Callable[[], Awaitable[T]], promise: Callable[[T], object] = bool, *, patience: float = 20, what: str = "it"
) -> T:
    """What a coroutine function returns once `promise` holds of it; between two looks others get their turn. Raises as `until` does."""
    deadline = time.monotonic() + patience
    while not promise(found := await look()):
        assert time.monotonic() < deadline, f"{what} did not come to hold in {patience} s; at last: {str(found)[:3000]}"
        await asyncio.sleep(0.01)
    return found
