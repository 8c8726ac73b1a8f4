"""CPU-bound work in threads, so that it does not block the event loop.

Python's threads share one lock and switch every `sys.getswitchinterval()`, so the event loop continues beside them, a
little slower. One thread does such work, and a second one only beside work that takes long, because the event loop
waits for each of them in turn. More work is queued.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import Any, Final, ParamSpec, TypeVar, cast

from tetrapod.generic.scheduling.large_work_threads import LargeWorkThreads
from tetrapod.machinery.copying import copy_large, copy_object
from tetrapod.machinery.freeing import free_large
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.long_work import TakesTooLong, on_event_loop

LARGE: Final = 32 * 1024
"""Bytes of an object from which on it is decoded, patched and validated in a thread. An apply, the slowest, takes 2.5
ms for each kB.
"""
_SMALL: Final = 4096
"""Bytes of a body below which it is never large."""
_MANY_MEMBERS: Final = 1000
"""Commas or lines from which on a body is large. An empty container has three bytes, and its validation takes 20 µs."""
_SMALL_MESSAGE: Final = 8192
"""Bytes from which on a protobuf message is large, whose members are not counted."""
_SMALL_CBOR: Final = 1024
"""Bytes from which on a CBOR body is large. An empty container has one byte."""
_THREADS: Final = 2

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_large(body: bytes) -> bool:
    """Return whether the object in a request body is decoded and validated in a thread.

    The time of that is estimated from the encoding and the size. These bodies are large:

    - JSON and YAML of 32 KiB, or of 4 KiB with more than 1,000 commas or lines.
    - Protobuf of 8 KiB.
    - CBOR of 1 KiB.
    """
    size = len(body)
    if body and body[0] >= 0x80:  # CBOR
        return size >= _SMALL_CBOR
    if size < _SMALL:
        return False
    if size >= LARGE or body.count(b",") > _MANY_MEMBERS:
        return True
    return size >= _SMALL_MESSAGE if body.startswith(b"k8s\0") else body.count(b"\n") > _MANY_MEMBERS


class _LargeWork:
    """A context manager for large work in a thread, which changes settings of the interpreter for its duration.

    Threads switch more often, and full garbage collections are off.

    The event loop waits for the interpreter lock for one switch interval each time it wakes up, and often when it
    decrypts a piece of what a client has sent. With Python's 5 ms a GET, which wakes it up four times, waits for 20 ms,
    and 256 kB of a body for 80 ms. A shorter interval costs a plain GET CPU time (1 ms: 7 %), so it is set only while
    there is large work.

    The nodes of a YAML document of 3 MB are a million objects. A full collection visits all of them, and blocked
    everything else for 100 to 300 ms. These objects are freed by their reference counts. They live at least until the
    request is answered, so full collections stay off until `REST` seconds after the last large work. If large work
    never rests, one happens every `LONGEST` seconds, for garbage in cycles.
    """

    NEVER: Final = 1 << 30
    """The third threshold of the collector during large work."""
    LONGEST: Final = 600.0
    """Seconds of large work, with rests shorter than `REST`, after which a full collection happens."""
    SWITCH_INTERVAL: Final = 0.0002
    """Seconds for which a thread keeps the interpreter lock while another waits for it."""
    REST: Final = 2.0
    """Seconds without such work after which full collections happen as before."""

    def __init__(self) -> None:
        self._entered = 0
        self._interval = sys.getswitchinterval()
        self._thresholds: tuple[int, int, int] | None = None
        """The collector's thresholds before such work; None while they are in effect."""
        self._uncollected_since = 0.0
        """When full collections were switched off or the last one happened, by `time.monotonic`."""
        self._restoring: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._entered += 1
        if self._entered > 1:
            return
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(self.SWITCH_INTERVAL)
        if self._restoring is not None:
            self._restoring.cancel()
        if self._thresholds is None:
            self._thresholds = young, middle, _ = gc.get_threshold()
            gc.set_threshold(young, middle, self.NEVER)
            self._uncollected_since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._entered -= 1
        if (now := time.monotonic()) - self._uncollected_since > self.LONGEST:
            gc.collect()
            self._uncollected_since = now
        if not self._entered:
            sys.setswitchinterval(self._interval)
            try:
                self._restoring = asyncio.get_running_loop().call_later(self.REST, self._restore)
            except RuntimeError:  # the work outlived its event loop
                self._restore()

    def end(self) -> None:
        """Restore the settings of the garbage collector now, unless large work is in progress."""
        self._restoring = None
        if not self._entered:
            self._restore()

    def _restore(self) -> None:
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            self._thresholds = None


_LARGE_WORK: Final = _LargeWork()


def restore_collector() -> None:
    """Restore the settings of the garbage collector that large work has changed, unless such work is in progress.

    They are normally restored by a timer. Call this when the event loop ends before.
    """
    _LARGE_WORK.end()


@cache
def _threads() -> LargeWorkThreads:
    return LargeWorkThreads(_THREADS)


class _ThreadCall:
    """A call in a thread. `_LARGE_WORK` is entered until the function has ended, even if the caller is cancelled.

    Create it on the event loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._participants = 1
        _LARGE_WORK.__enter__()

    def begin(self) -> None:
        """Record, in the thread, that the function begins."""
        with self._lock:
            self._participants += 1

    def end(self) -> bool:
        """Record, in the thread, that the function has ended. Return whether its caller was cancelled before."""
        if not self._leave():
            return False
        try:
            self._loop.call_soon_threadsafe(_LARGE_WORK.__exit__)
        except RuntimeError:  # the event loop has been closed
            _LARGE_WORK.__exit__()
        return True

    def leave(self) -> None:
        """Record, on the event loop, that the caller has the result or was cancelled."""
        if self._leave():
            _LARGE_WORK.__exit__()

    def _leave(self) -> bool:
        with self._lock:
            self._participants -= 1
            return not self._participants


async def in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `work(*args, **kwargs)` in a thread for CPU-bound work, and return its result.

    Context variables are passed on. Exceptions are raised. If the caller is cancelled, a function that already runs
    continues, and one that waits for a thread is not called.
    """
    # The traceback of an error keeps the frame of `call` and, from it, the variables that its closure refers to. So
    # `call` takes the arguments out of a list: they can be millions of objects.
    bound = [(partial(work, **kwargs), args)]
    thread_call = _ThreadCall()

    def call() -> _T:
        thread_call.begin()
        function, arguments = bound.pop()
        result: list[Any] = []
        try:
            result.append(function(*arguments))
        except BaseException as error:
            # The event loop would free the local variables of these frames, which can be millions of objects, in one
            # step.
            if error.__traceback__ is not None:
                traceback.clear_frames(error.__traceback__.tb_next)
            _clear_frames_of_contexts(error)
            raise
        finally:
            if thread_call.end():
                # Nothing else refers to them any more: they would be freed at once when this function returns.
                result.extend(arguments)
                del arguments
                free_large(result)
                result.append(None)
        return cast(_T, result.pop())

    try:
        return await _threads().call(partial(contextvars.copy_context().run, call))
    finally:
        thread_call.leave()


def _clear_frames_of_contexts(error: BaseException) -> None:
    """Clear the frames of all errors that were handled when `error` was raised, and which it keeps."""
    handled = error.__context__
    while handled is not None:
        traceback.clear_frames(handled.__traceback__)
        handled = handled.__context__


async def offloaded(large: bool, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `work(*args, **kwargs)` and return its result. Exceptions of `work` are passed on.

    Args:
        large: whether to call it in a thread (`in_thread`), because it would block the event loop.
        work: the function.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    return await in_thread(work, *args, **kwargs) if large else work(*args, **kwargs)


async def offloaded_if_slow(work: Callable[[], _T]) -> _T:
    """Call `work()` on the event loop, and again in a thread if it raises `TakesTooLong`.

    Args:
        work: the function. It must change nothing before it raises `TakesTooLong`.
    """
    try:
        with on_event_loop():
            return work()
    except TakesTooLong:
        return await in_thread(work)


async def copy_of(obj: Object, *, large: bool) -> Object:
    """Return a deep copy of an object. With `large`, it is made in a thread, to keep the event loop free."""
    return await in_thread(copy_large, obj) if large else copy_object(obj)


async def to_the_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await a coroutine to its end even if the caller is cancelled, and return its result.

    If the caller is cancelled, CancelledError is raised only after `work` has ended. This is for work that must not be
    lost when a client leaves, such as the last audit event of its request.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
    return await task
