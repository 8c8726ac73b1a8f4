"""The limits of work on the event loop: its time, and the exception of work that would take longer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

QUICK_SECONDS: Final = 0.02
"""The time that expressions and patterns may take on the event loop. Longer work is repeated in a thread."""
_DEADLINE: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)


class TakesTooLong(Exception):
    """The signal that the caller must repeat the work in a thread; raised before the work has changed anything."""


@contextmanager
def on_event_loop(seconds: float | None = None) -> Iterator[None]:
    """Set the time that the work in this context may take, because it runs on the event loop.

    Args:
        seconds: the time, which `check_time` enforces. None means `QUICK_SECONDS`.
    """
    token = _DEADLINE.set(time.perf_counter() + (QUICK_SECONDS if seconds is None else seconds))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time(seconds: float = 0.0) -> None:
    """Check that a step that takes `seconds` ends before the deadline of `on_event_loop`, if there is one.

    Raises:
        TakesTooLong: it ends later.
    """
    if time.perf_counter() + seconds > _DEADLINE.get():
        raise TakesTooLong
