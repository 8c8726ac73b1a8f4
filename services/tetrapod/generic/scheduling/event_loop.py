"""The event loop of a program: that of uvloop, or that of asyncio where uvloop is not installed, as on Windows."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop. The caller closes it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop of this thread, and return its result. Its exceptions are raised."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def on_signals(numbers: Sequence[signal.Signals], callback: Callable[[], object]) -> None:
    """Call a function in the running event loop, which must be that of the main thread, when a signal arrives.

    Args:
        numbers: the signals.
        callback: the function.
    """
    loop = asyncio.get_running_loop()

    def receive(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(callback)

    for number in numbers:
        try:
            loop.add_signal_handler(number, callback)
        except NotImplementedError:  # the event loop of asyncio on Windows
            signal.signal(number, receive)
