"""`SharedCall`: many who ask the same question at the same time get one answer.

An answer is good only for who asked before the question was sent. So whoever comes while a call is under way waits for the next
one, and shares that with everybody else who came meanwhile: at most one call is in flight and one in waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
            self._next.add_done_callback(_heard)
        return await asyncio.shield(self._next)

    async def _after(self, running: asyncio.Task[T] | None) -> T:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        return await self._call()


def _heard(task: asyncio.Task[T]) -> None:
    """A failure is no news where whoever asked has gone meanwhile."""
    if not task.cancelled():
        task.exception()
