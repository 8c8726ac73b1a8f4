"""`SharedCall`: many who ask the same question at the same time get one answer.

An answer is good only for who asked before the question was sent. So whoever comes while a call is under way waits for the next
one, and shares that with everybody else who came meanwhile: at most one call is in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._waiting: list[asyncio.Future[T]] = []  # for the next answer
        self._asking: asyncio.Task[None] | None = None

    async def __call__(self) -> T:
        """Raises what the call does; who is cancelled takes the answer from nobody."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting.append(answer)
        if self._asking is None:
            self._asking = loop.create_task(self._ask())
        return await answer

    async def _ask(self) -> None:
        waiting: list[asyncio.Future[T]] = []
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                try:
                    result = await self._call()
                except Exception as error:
                    for answer in waiting:
                        if not answer.done():
                            answer.set_exception(error)
                else:
                    for answer in waiting:
                        if not answer.done():
                            answer.set_result(result)
        finally:
            self._asking = None
            for answer in (*waiting, *self._waiting):  # the loop is being closed
                answer.cancel()
            self._waiting.clear()
