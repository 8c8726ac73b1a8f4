"""The threads for large work, and the order in which requests get them.

The large work of a request is a sequence of calls: it decodes an object, validates it, encodes it. Between two of them
its object stays in memory. In the order of arrival all requests of a flood would be decoded before the first of them
is validated, and all their objects would be in memory at once. Therefore calls of requests that have begun come first.

Usually one thread works. Python's threads share one lock, so that two threads do no more work than one, but the event
loop waits longer for the lock. Measured with 15 bodies of 2 MB: a read of 256 kB from a TLS connection took 60 to 90 ms
beside two threads, and at most 35 beside one. A further thread works only beside a call that takes long.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_T = TypeVar("_T")
_MOST_IN_A_ROW: Final = 4
"""Calls of requests that have begun after which one of another request comes first. It may wait forever otherwise."""
_LONG: Final = 0.5
"""Seconds for which every call in progress has run before one begins in a further thread. Almost all calls are shorter.
"""
_begun: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("_begun", default=False)
"""Whether the current task has called a function in one of the threads before."""


class LargeWorkThreads:
    """A pool of threads, which may be used from several event loops.

    One call runs at a time. A further one begins beside it once each call in progress has run for `long` seconds.
    Tasks that have called a function in a thread before come first, but at most four of them in a row.

    Args:
        count: the most calls that run at once.
        long: seconds after which a call in progress no longer keeps others from beginning.
    """

    def __init__(self, count: int, long: float = _LONG) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="large-work")
        self._count, self._long = count, long
        self._lock = threading.Lock()
        self._began: dict[_Turn, float] = {}  # when each call in progress began, by `time.monotonic`
        self._in_a_row = 0
        self._first: deque[_Turn] = deque()  # turns of tasks that have not called a function before
        self._next: deque[_Turn] = deque()  # those of tasks that have

    async def call(self, work: Callable[[], _T]) -> _T:
        """Call a function in a thread, and return its result.

        If the caller is cancelled, a function that runs continues to run, and one that waits is not called.
        """
        turn = await self._wait_for_turn()
        try:
            future = self._executor.submit(work)
        except BaseException:
            self._end(turn)
            raise
        future.add_done_callback(lambda _: self._end(turn))
        _begun.set(True)
        return await asyncio.wrap_future(future)

    async def _wait_for_turn(self) -> _Turn:
        turn = _Turn()
        with self._lock:
            if not self._first and not self._next and self._may_begin():
                self._begin(turn)
                return turn
            (self._next if _begun.get() else self._first).append(turn)
        self._pass_on()
        try:
            while not turn.future.done():
                await asyncio.wait((turn.future,), timeout=self._long)
                self._pass_on()
        except asyncio.CancelledError:
            with self._lock:
                turn.cancelled = True
            self._end(turn)
            raise
        return turn

    def _may_begin(self) -> bool:
        """Return whether a further call may begin. The caller holds the lock."""
        if not self._began:
            return True
        if len(self._began) >= self._count:
            return False
        return time.monotonic() - max(self._began.values()) >= self._long

    def _begin(self, turn: _Turn) -> None:
        """Count a call as in progress. The caller holds the lock."""
        self._began[turn] = time.monotonic()

    def _end(self, turn: _Turn) -> None:
        """Count a call as in progress no longer, and let waiting tasks begin theirs. It may be called in any thread."""
        with self._lock:
            self._began.pop(turn, None)
        self._pass_on()

    def _pass_on(self) -> None:
        """Let waiting tasks begin their calls, as many as may. It may be called in any thread."""
        while True:
            with self._lock:
                turn = self._take() if self._may_begin() else None
                if turn is None:
                    return
                if turn.cancelled:
                    continue
                self._begin(turn)
            try:
                turn.loop.call_soon_threadsafe(turn.begin)
            except RuntimeError:  # its event loop has been closed: its task no longer waits
                with self._lock:
                    del self._began[turn]

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
        cancelled: whether the task has been cancelled.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.cancelled = False

    def begin(self) -> None:
        if not self.future.done():
            self.future.set_result(None)
