"""`live_objects`: all that Python's collector knows."""

from __future__ import annotations

import gc


def live_objects() -> list[object]:
    """With what start-up has made, which is frozen otherwise (cli/running.py)."""
    gc.unfreeze()
    objects = gc.get_objects()
    gc.freeze()
    return objects
