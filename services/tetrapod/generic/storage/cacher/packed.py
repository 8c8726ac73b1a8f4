"""Entries of large objects that are seldom read, kept compressed: schemas shrink to a tenth and less (`StorageConfig.packed`)."""

from __future__ import annotations

import zlib
from typing import Final

from tetrapod.generic.storage.cacher.entry import StoredEntry

SMALLEST: Final = 2048
LARGEST: Final = 1 << 20
"""Compressing more than this would keep the loop for too long."""
_LEVEL: Final = 1


class PackedEntry(StoredEntry):
    """A `StoredEntry` without its `item`: whoever asks for that gets it unpacked, and it is not kept."""

    __slots__ = ("_packed",)

    _packed: bytes

    def __getattr__(self, name: str) -> bytes:
        if name != "item":
            raise AttributeError(name)
        return zlib.decompress(self._packed)


def packed(entry: StoredEntry) -> StoredEntry:
    """The same entry, compressed if that pays."""
    if not SMALLEST <= len(entry.item) <= LARGEST:
        return entry
    made = PackedEntry.__new__(PackedEntry)
    made.key, made.head, made.revision, made.lease = entry.key, entry.head, entry.revision, entry.lease
    made._labels = made._derived = None
    made._packed = zlib.compress(entry.item, _LEVEL)
    return made
