"""The threads for large work, and the order in which requests get them.

The large work of a request is a sequence of calls: it decodes an object, validates it, encodes it. Between two of them
its object stays in memory. In the order of arrival all requests of a flood would be decoded before the first of them
is validated, and all their objects would be in memory at once. Therefore calls of requests that have begun come first.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

_T = TypeVar("_T")
_MOST_IN_A_ROW: Final = 4
"""Calls of requests that have begun after which one of another request comes first. It may wait forever otherwise."""
_begun: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("_begun", default=False)
"""Whether the current task has called a function in one of the threads before."""


class LargeWorkThreads:
    """A pool of threads, which may be used from several event loops.

    Tasks that have called a function in a thread before get the next free one, but at most four of them in a row.

    Args:
        count: the number of threads.
    """

    def __init__(self, count: int) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="large-work")
        self._lock = threading.Lock()
        self._free = count
        self._in_a_row = 0
        self._first: deque[_Turn] = deque()  # turns of tasks that have not called a function before
        self._next: deque[_Turn] = deque()  # those of tasks that have

    async def call(self, work: Callable[[], _T]) -> _T:
        """Call a function in a thread, and return its result.

        If the caller is cancelled, a function that runs continues to run, and one that waits is not called.
        """
        await self._wait_for_turn()
        try:
            future = self._executor.submit(work)
        except BaseException:
            self._release()
            raise
        future.add_done_callback(self._on_end)
        _begun.set(True)
        return await asyncio.wrap_future(future)

    async def _wait_for_turn(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = _Turn()
            (self._next if _begun.get() else self._first).append(turn)
        try:
            await turn.future
        except asyncio.CancelledError:
            with self._lock:
                granted = turn.granted
                turn.cancelled = True
            if granted:
                self._release()
            raise

    def _on_end(self, _: Future[_T]) -> None:
        self._release()

    def _release(self) -> None:
        """Give a thread that has become free to the next waiting task, or count it as free if no task waits.

        It may be called in any thread.
        """
        while True:
            with self._lock:
                turn = self._take()
                if turn is None:
                    self._free += 1
                    return
                if turn.cancelled:
                    continue
                turn.granted = True
            # If the event loop of this turn has been closed, its task no longer waits: the next turn gets the thread.
            with suppress(RuntimeError):
                turn.loop.call_soon_threadsafe(turn.begin)
                return

    def _take(self) -> _Turn | None:
        """Remove the task that gets the next thread from its queue and return it, or None if no task waits.

        Tasks that have called a function before go first, but at most `_MOST_IN_A_ROW` of them in a row. The caller
        holds the lock.
        """
        if self._next and (self._in_a_row < _MOST_IN_A_ROW or not self._first):
            self._in_a_row += 1
            return self._next.popleft()
        self._in_a_row = 0
        return self._first.popleft() if self._first else None


class _Turn:
    """A task that waits for a thread.

    Attributes:
        loop: the event loop of the task.
        future: done once the task may use the thread.
        granted: whether a thread has been given to the task.
        cancelled: whether the task has been cancelled.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.granted = self.cancelled = False

    def begin(self) -> None:
        if not self.future.done():
            self.future.set_result(None)
