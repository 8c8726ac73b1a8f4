"""`copied`: the object of an entry, which the caller may change."""

from __future__ import annotations

from tetrapod.generic.scheduling.offload import LARGE, in_thread
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object


async def copied(entry: Entry) -> Object:
    """Return a copy of the object of an entry. A large one is parsed in a thread."""
    return entry.object() if len(entry.item) < LARGE else await in_thread(entry.object)
