"""`live_objects`: every object that Python's cyclic garbage collector tracks."""

from __future__ import annotations

import gc


def live_objects() -> list[object]:
    """Return all tracked objects, those included that start-up has frozen (apps/process.py).

    Unreachable cycles are collected first.

    The collection is needed: the objects are frozen again, and the collector never looks at garbage that is frozen.
    """
    gc.unfreeze()
    gc.collect()
    objects = gc.get_objects()
    gc.freeze()
    return objects
