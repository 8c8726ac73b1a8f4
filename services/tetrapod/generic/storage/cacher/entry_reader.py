"""`EntryReader`: makes the entries of one resource from stored values, with the defaults that a value lacks.

A value that this process wrote has its defaults. It is recognized by its bytes when its event arrives, so that the
objects of its own writes are neither parsed nor compared. Every other value (of the time before the start, of another
replica or of another program) is completed once, when it enters the watch cache. The defaults of a custom resource may
change afterwards, so an entry that lacks them is only marked (`IncompleteEntry`).
Upstream: decoding by the codec of a resource, which sets the defaults of the stored version at each read.
"""

from __future__ import annotations

import orjson

from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.backend import KeyValue
from tetrapod.generic.storage.cacher.entry import IncompleteEntry, StoredEntry
from tetrapod.generic.storage.config import Mistyped, StoredDefaults
from tetrapod.generic.storage.unreadable import NotDecodable
from tetrapod.machinery.golang.json_numbers import without_exponents
from tetrapod.machinery.json_pieces import dumps, loads


class EntryReader:
    """The conversion of stored values of one resource to entries.

    Args:
        defaults: sets the defaults of the resource; None if it has none.
    """

    def __init__(self, defaults: StoredDefaults | None = None) -> None:
        self.defaults = defaults
        self._writes: dict[str, tuple[bytes, int]] = {}

    @property
    def completes(self) -> bool:
        """Whether stored values may lack defaults."""
        return self.defaults is not None and self.defaults.exist

    async def load(self, key: str, kv: KeyValue) -> StoredEntry:
        """Return the entry of a key as `read` does; a large value is decoded in a thread.

        Raises:
            NotTransformable: the value cannot be decrypted.
            NotDecodable: the value is not an object, or is decoded for its defaults and has values of wrong types.
        """
        return await offloaded(len(kv.value) >= LARGE, self.read, key, kv)

    def read(self, key: str, kv: KeyValue) -> StoredEntry:
        """Return the entry of a key of the store. `key` is the key relative to the resource's prefix.

        Raises:
            NotTransformable: the value cannot be decrypted.
            NotDecodable: the value is not an object, or is decoded for its defaults and has values of wrong types.
        """
        entry = StoredEntry.from_key_value(key, kv)
        defaults = self.defaults
        if defaults is None or not defaults.exist or (self._writes and self._is_own(key, kv)):
            return entry
        obj = loads(entry.raw)
        try:
            if not defaults.complete(obj):
                return entry
        except Mistyped as error:
            raise NotDecodable(str(error), kv.mod_revision, kv.key) from None
        raw = without_exponents(orjson.dumps(obj) if entry.size < LARGE else dumps(obj))
        if raw == entry.raw or obj == loads(entry.raw):
            return entry
        if defaults.may_change:
            return IncompleteEntry.from_served(key, entry.raw, entry.revision, entry.lease)
        return StoredEntry.from_served(key, raw, entry.revision, entry.lease)

    # Writes of this process

    def begin_write(self, key: str, value: bytes) -> None:
        """Record a value before it is written. `end_write` must follow."""
        if self.completes:
            self._writes[key] = (value, 0)

    def end_write(self, key: str, value: bytes, revision: int, reached: int) -> None:
        """Record the end of a write, whose event may still have to arrive.

        Args:
            key: the key, relative to the resource's prefix.
            value: the value of `begin_write`.
            revision: the revision of the write; 0 if it failed, or its outcome is unknown.
            reached: the revision up to which the watch cache has every event. It will get no event of this write if it
                has reached its revision.
        """
        write = self._writes.get(key)
        if write is None or write[0] is not value:
            return
        if reached < revision:
            self._writes[key] = (value, revision)
        else:
            del self._writes[key]

    def forget_writes(self) -> None:
        """Forget all writes. The watch cache was filled again and contains them, so their events will not arrive."""
        self._writes.clear()

    def _is_own(self, key: str, kv: KeyValue) -> bool:
        """Return whether this process wrote a value that is read. If so, or if the value is later, forget the write."""
        write = self._writes.get(key)
        if write is None:
            return False
        value, revision = write
        own = value == kv.value
        if own or 0 < revision <= kv.mod_revision:
            del self._writes[key]
        return own
