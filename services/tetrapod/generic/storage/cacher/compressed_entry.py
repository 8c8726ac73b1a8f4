"""Compressed entries of large objects that are seldom read, such as schemas.

Such objects shrink to a tenth or less (`StorageConfig.packed`).
"""

from __future__ import annotations

import zlib
from typing import Final

from tetrapod.generic.storage.cacher.entry import StoredEntry

SMALLEST: Final = 2048
LARGEST: Final = 1 << 20
"""Compressing larger objects would block the event loop for too long."""
_LEVEL: Final = 1


class PackedEntry(StoredEntry, gc=False, eq=False):
    """A `StoredEntry` that keeps `item` compressed. Each access decompresses it again."""

    _packed: bytes = b""

    def __getattr__(self, name: str) -> bytes:
        if name != "item":
            raise AttributeError(name)
        return zlib.decompress(self._packed)


def packed(entry: StoredEntry) -> StoredEntry:
    """Return the entry compressed, or unchanged if its size is outside of `SMALLEST` to `LARGEST`."""
    if not SMALLEST <= len(entry.item) <= LARGEST:
        return entry
    compressed = PackedEntry(
        entry.key, entry.head, b"", entry.revision, entry.lease, _packed=zlib.compress(entry.item, _LEVEL)
    )
    del compressed.item
    return compressed
