"""The limits of work on the event loop: its time, and the exception of work that would take longer.

The deadline is a context variable, so that the functions between the caller, which knows where they run, and a slow
step need no parameter for it. `in_thread` and the like call the work outside of `on_event_loop`, so it has none there.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, Token
from typing import Final

QUICK_SECONDS: Final = 0.02
"""The time that expressions and patterns may take on the event loop. Longer work is repeated in a thread."""
_DEADLINE: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)


class TakesTooLong(Exception):
    """The signal that the caller must repeat the work in a thread; raised before the work has changed anything."""


class _Limited:
    """The context manager of `on_event_loop`. A generator would take three times as long."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._token: Token[float] | None = None

    def __enter__(self) -> None:
        self._token = _DEADLINE.set(time.perf_counter() + self._seconds)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _DEADLINE.reset(self._token)


def on_event_loop(seconds: float | None = None) -> _Limited:
    """Return a context manager that sets the time of the work in it, because the work runs on the event loop.

    Args:
        seconds: the time, which `check_time` and evaluations of CEL expressions enforce. None means `QUICK_SECONDS`.
    """
    return _Limited(QUICK_SECONDS if seconds is None else seconds)


def deadline() -> float:
    """Return when the work in this context must end, by `time.perf_counter`; infinite if it is not on the event loop.

    Work that checks the time often asks once.
    """
    return _DEADLINE.get()


def is_limited() -> bool:
    """Return whether the work in this context has a deadline, because it runs on the event loop."""
    return _DEADLINE.get() < math.inf


def check_time(seconds: float = 0.0) -> None:
    """Check that a step that takes `seconds` ends before the deadline of `on_event_loop`, if there is one.

    Raises:
        TakesTooLong: it ends later.
    """
    if time.perf_counter() + seconds > _DEADLINE.get():
        raise TakesTooLong
