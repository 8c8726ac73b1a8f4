"""Functions that return the object of an `Entry`. One of at least `LARGE` bytes is parsed in a thread."""

from __future__ import annotations

from tetrapod.generic.scheduling.offload import LARGE, in_thread
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object


async def copied(entry: Entry) -> Object:
    """Return a new copy of the object of an entry, which the caller may change."""
    return entry.object() if entry.size < LARGE else await in_thread(entry.object)


async def peeked(entry: Entry) -> Object:
    """Return the object of an entry, which the caller must not change.

    An object of less than `LARGE` bytes is parsed once and cached in the entry. A larger one is parsed in a thread and
    not cached, because deallocating it later would block the event loop.
    """
    return entry.peek() if entry.size < LARGE else await in_thread(entry.object)
