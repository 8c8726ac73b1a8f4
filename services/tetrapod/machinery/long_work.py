"""The limits of work on the event loop: its time, and the exception of work that would take longer."""

from __future__ import annotations

from typing import Final

QUICK_SECONDS: Final = 0.02
"""The time that expressions may take on the event loop. Longer work is repeated in a thread."""


class TakesTooLong(Exception):
    """The signal that the caller must repeat the work in a thread; raised before the work has changed anything."""
