"""CPU-bound work in threads, so that it does not block the event loop.

Python's threads share one lock and switch every `sys.getswitchinterval()`, so the event loop continues beside them, a little slower.
Only few threads do such work, because the event loop waits for each of them in turn. More work is queued.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Final, ParamSpec, TypeVar

LARGE: Final = 32 * 1024
"""Bytes of an object from which on it is decoded, patched and validated in a thread. An apply, the slowest, takes 2.5 ms for each kB."""
_THREADS: Final = 2

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _LargeWork:
    """While entered, the interpreter is set for large work in a thread: threads switch more often, and full collections are rarer.

    The event loop waits for the interpreter lock for one switch interval each time it wakes up. With Python's 5 ms that is 20 ms for a GET,
    which wakes it up four times. An interval of 1 ms costs 7 % of a plain GET's CPU time, so it is set only while there is such work.

    The nodes of a YAML document of 3 MB are a million objects. A full collection visits all of them, and blocked everything else for
    300 ms, several times for one document. Such objects are freed by their reference counts.
    """

    FACTOR: Final = 10
    SWITCH_INTERVAL: Final = 0.001
    """Seconds for which a thread keeps the interpreter lock while another waits for it."""

    def __init__(self) -> None:
        self._entered = 0
        self._thresholds = gc.get_threshold()
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> None:
        self._entered += 1
        if self._entered == 1:
            self._thresholds = young, middle, old = gc.get_threshold()
            gc.set_threshold(young, middle, self.FACTOR * old)
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(self.SWITCH_INTERVAL)

    def __exit__(self, *_: object) -> None:
        self._entered -= 1
        if not self._entered:
            gc.set_threshold(*self._thresholds)
            sys.setswitchinterval(self._interval)


_LARGE_WORK: Final = _LargeWork()


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="large-work")


async def in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in one of the threads for large work. Cancelling the caller does not stop it."""
    call = partial(contextvars.copy_context().run, work, *args, **kwargs)
    with _LARGE_WORK:
        return await asyncio.get_running_loop().run_in_executor(_executor(), call)


async def offloaded(large: bool, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in a thread if it works on something `large`, else directly."""
    return await in_thread(work, *args, **kwargs) if large else work(*args, **kwargs)
