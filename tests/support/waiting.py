"""`until`: tests wait for what they were promised, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], patience: float = 60, what: str = "it") -> None:
    """Ask again and again, since other processes and threads tell nobody. Raises AssertionError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come to hold in {patience} s"
        time.sleep(0.02)
