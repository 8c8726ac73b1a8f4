"""Entries of large objects that are seldom read, kept compressed: schemas shrink to a tenth and less (`StorageConfig.packed`)."""

from __future__ import annotations

import zlib
from typing import Final

from tetrapod.generic.storage.cacher.entry import StoredEntry

SMALLEST: Final = 2048
LARGEST: Final = 1 << 20
"""Compressing more than this would keep the loop for too long."""
_LEVEL: Final = 1


class PackedEntry(StoredEntry, gc=False, eq=False):
    """A `StoredEntry` without its `item`: whoever asks for that gets it unpacked, and it is not kept."""

    _packed: bytes = b""

    def __getattr__(self, name: str) -> bytes:
        if name != "item":
            raise AttributeError(name)
        return zlib.decompress(self._packed)


def packed(entry: StoredEntry) -> StoredEntry:
    """The same entry, compressed if that pays."""
    if not SMALLEST <= len(entry.item) <= LARGEST:
        return entry
    made = PackedEntry(entry.key, entry.head, b"", entry.revision, entry.lease, _packed=zlib.compress(entry.item, _LEVEL))
    del made.item
    return made
