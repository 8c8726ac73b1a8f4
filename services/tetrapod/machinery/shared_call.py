"""`SharedCall`: concurrent callers of the same request share one response.

A response is valid only for callers that arrived before the request was sent. A caller that arrives while a call is
in flight waits for the next call, together with all others that arrive in that time. At most one call is in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tetrapod.machinery.failure import Failure

T = TypeVar("T")


class SharedCall(Generic[T]):
    """A request without parameters whose response concurrent callers share.

    A caller that arrives while a call is in flight does not get the response of that call. It waits for the next one,
    together with all others that arrive in that time.

    Args:
        call: sends the request. It never runs twice at the same time.
    """

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._waiting: list[asyncio.Future[T]] = []  # waiting for the next response
        self._asking: asyncio.Task[None] | None = None

    async def __call__(self) -> T:
        """Return the response of a call that starts after this one. Raises the errors of the call.

        Cancelling one caller does not affect the others.
        """
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
                    failure = Failure(error)
                    for answer in waiting:
                        if not answer.done():
                            answer.set_exception(failure.error())
                else:
                    for answer in waiting:
                        if not answer.done():
                            answer.set_result(result)
        finally:
            self._asking = None
            for answer in (*waiting, *self._waiting):  # the loop is being closed
                answer.cancel()
            self._waiting.clear()
