"""`StoredEntry`: one revision of one object, kept as bytes.

Only about one entry in ten thousand is ever inspected. Derived data (the parsed object, other representations) is
therefore kept only for recently used entries. `recently_used` is a process-wide queue of them, which is limited by the
size of the objects and by time. The protobuf message of an entry and its row of a Table, once made, are kept as long as
the entry. The row of a pod takes about 400 bytes.

The bytes are kept in two parts, because the items of a list response omit kind and apiVersion. To cut them off would
copy each item (measured: 10 of 36 ms for a list of 29 MB).

Large objects that are seldom read, such as schemas, are kept compressed (`StorageConfig.compressed`): they shrink
to a tenth or less.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from isal import isal_zlib

from tetrapod.generic.storage.backend import KeyValue, UnreadableKeyValue
from tetrapod.generic.storage.encoding import CorruptObject, check_json, divided, respliced, splice
from tetrapod.generic.storage.unreadable import NotDecodable, NotTransformable
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads
from tetrapod.machinery.table_rows import StoredRow

DERIVED_BYTES: Final = 4 << 20
"""The maximum total size of the objects that are kept in parsed form, measured as JSON. In parsed form they take about
ten times as much memory.
"""
DERIVED_SECONDS: Final = 1.0
"""The garbage collector visits all parsed objects again and again. Under the load of a cluster of 20 nodes, collecting
its middle generation took 59 ms of CPU time with 5 seconds, and 32 ms with 1. To parse a pod takes 0.02 ms.
"""
_DROPPED_BY_ADDITION: Final = 2
"""Expired entries whose derived data an addition drops: more than one, so that their number decreases."""
_DROPPED_BY_SWEEP: Final = 32
"""The same for a step of a sweep. To drop a parsed pod takes 10 to 30 µs."""
NO_LABELS: Final[Mapping[str, str]] = {}


SMALLEST: Final = 2048
LARGEST: Final = 1 << 20
"""The size in bytes up to which objects are compressed. Compressing larger ones would block the event loop for too
long.
"""
_LEVEL: Final = 1


class _Labelled(msgspec.Struct):
    labels: dict[str, str] | None = None


class _WithLabels(msgspec.Struct):
    metadata: _Labelled


class _Identified(msgspec.Struct):
    uid: Any = ""


class _WithUid(msgspec.Struct):
    metadata: _Identified


_labels_of = msgspec.json.Decoder(_WithLabels).decode
_uid_of = msgspec.json.Decoder(_WithUid).decode
"""Decodes only metadata.uid, so that an object whose labels have a wrong type can still be deleted."""
_heads: dict[bytes, bytes] = {}
"""All distinct values of `StoredEntry.head`. The entries of a kind share one bytes object."""


class _Derived(msgspec.Struct, gc=False):
    """Data computed from an entry's bytes, which can be dropped and computed again.

    Attributes:
        parsed: the parsed object; None before its first use.
        representations: other encodings by keys that their users choose (see `Entry.representations`).
    """

    parsed: Object | None = None
    representations: dict[Any, Any] = msgspec.field(default_factory=dict)


class StoredEntry(msgspec.Struct, gc=False, eq=False):
    """An object of the watch cache or the store; implements `Entry`, which explains the attributes.

    `lease` is the ID of the object's lease; 0 if it does not expire. `size` is a field, because lists read it for each
    of their entries: a property took 2 of the 25 ms of a list of 10,000 pods.

    Entries are excluded from Python's cyclic garbage collector (`gc=False`). They are never part of cycles, and the
    collector would otherwise scan the thousands that every write leaves behind.
    """

    key: str
    head: bytes
    item: bytes
    revision: int
    size: int
    lease: int = 0
    _labels: Mapping[str, str] | None = None
    _derived: _Derived | None = None
    indexed: str | None = None
    message: bytes | None = None
    row: StoredRow | None = None

    @classmethod
    def from_served(cls, key: str, raw: bytes, revision: int, lease: int = 0) -> StoredEntry:
        """Create an entry from JSON bytes that include metadata.resourceVersion.

        Args:
            key: the key, relative to the resource's prefix.
            raw: the bytes.
            revision: that resource version.
            lease: the ID of its lease; 0 if it does not expire.
        """
        head, item = divided(raw)
        return cls(key, _heads.setdefault(head, head), item, revision, len(item), lease)

    @classmethod
    def from_stored(cls, key: str, value: bytes, revision: int, lease: int = 0) -> StoredEntry:
        """Create an entry from a value of the store, inserting `revision` as its resource version.

        Args:
            key: the key, relative to the resource's prefix.
            value: the decrypted value in any encoding: JSON, CBOR, protobuf or YAML.
            revision: the mod revision of the key.
            lease: the ID of its lease; 0 if it does not expire.

        Raises:
            CorruptObject: the value cannot be decoded, is not an object, or its kind, apiVersion or metadata is
                malformed.
            NotTransformable: the value is encrypted, because no encryption is configured for the resource.
        """
        check_json(value)
        return cls.from_served(key, splice(value, revision), revision, lease)

    @classmethod
    def from_key_value(cls, key: str, kv: KeyValue) -> StoredEntry:
        """Create an entry from a key of the store. `key` is the key relative to the resource's prefix.

        Raises:
            NotTransformable: the value cannot be decrypted.
            NotDecodable: the value is not an object.
        """
        if isinstance(kv, UnreadableKeyValue):
            raise NotTransformable(kv.value.decode(), kv.key)
        try:
            return cls.from_stored(key, kv.value, kv.mod_revision, kv.lease)
        except CorruptObject as error:
            raise NotDecodable(str(error), kv.mod_revision, kv.key) from None
        except NotTransformable as error:
            raise NotTransformable(error.first.reason, kv.key) from None

    @property
    def raw(self) -> bytes:
        return self.head + self.item

    def object(self) -> Object:
        parsed: Object = loads(self.raw)
        return parsed

    def peek(self) -> Object:
        derived = self._derived_data()
        if derived.parsed is None:
            derived.parsed = loads(self.raw)
        return derived.parsed

    @property
    def representations(self) -> dict[Any, Any]:
        return self._derived_data().representations

    @property
    def labels(self) -> Mapping[str, str]:
        if self._labels is None:
            self._labels = _labels_of(b"{" + self.item).metadata.labels or NO_LABELS
        return self._labels

    @property
    def uid(self) -> str:
        """The object's metadata.uid; "" if it is missing or not a string. It is parsed at each access."""
        uid = _uid_of(b"{" + self.item).metadata.uid
        return uid if isinstance(uid, str) else ""

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def as_deleted(self, revision: int) -> StoredEntry:
        """Return a new entry with this state of the object and the resource version of its deletion."""
        return StoredEntry.from_served(self.key, respliced(self.raw, self.revision, revision), revision)

    def drop_derived_data(self) -> None:
        """Drop the parsed object and other encodings; they are computed again when needed."""
        self._derived = None

    def _derived_data(self) -> _Derived:
        derived = self._derived
        if derived is None:
            derived = self._derived = _Derived()
            recently_used.add(self)
        return derived  # in a worker thread, `_derived` can be None again: the event loop drops it


class _RecentlyUsed:
    """The entries that have derived data (a parsed object or other encodings), in the order in which they got it.

    A later use does not move an entry. The derived data of the first entries is dropped when the entries' own JSON
    exceeds `DERIVED_BYTES` in total. Otherwise it is dropped after one to two times `DERIVED_SECONDS`: by the next
    additions, a few entries at each, or by a timer.

    To drop all expired entries at once took steps of the event loop of up to 13 ms.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: deque[tuple[StoredEntry, int, float]] = deque()  # with the size, and the time of the addition
        self._bytes = 0
        self._sweeper: asyncio.Handle | None = None

    def add(self, entry: StoredEntry) -> None:
        """Register an entry that has just got derived data.

        If the total size exceeds the limit, drop the derived data of the oldest entries.
        """
        size, now = entry.size, self._clock()
        self._entries.append((entry, size, now))
        self._bytes += size
        while self._bytes > DERIVED_BYTES and len(self._entries) > 1:
            self._drop_oldest()
        self._drop_expired(now, _DROPPED_BY_ADDITION)
        if self._sweeper is None or self._sweeper.cancelled():
            self._schedule_sweep()

    def _drop_oldest(self) -> None:
        oldest, size, _ = self._entries.popleft()
        self._bytes -= size
        oldest.drop_derived_data()

    def _drop_expired(self, now: float, most: int) -> bool:
        """Drop the derived data of at most `most` entries that have expired by `now`. Return whether some remain."""
        expired = now - DERIVED_SECONDS
        while self._entries and self._entries[0][2] < expired:
            if not most:
                return True
            self._drop_oldest()
            most -= 1
        return False

    def _schedule_sweep(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no event loop is running: command-line tools and tests
            return
        self._sweeper = loop.call_later(DERIVED_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Drop the derived data of expired entries, a few in each step of the loop, and schedule the next sweep."""
        self._sweeper = None
        if self._drop_expired(self._clock(), _DROPPED_BY_SWEEP):
            self._sweeper = asyncio.get_running_loop().call_soon(self._sweep)
        elif self._entries:
            self._schedule_sweep()


recently_used = _RecentlyUsed()


class IncompleteEntry(StoredEntry, gc=False, eq=False):
    """A `StoredEntry` that lacks defaults. They are set at each read, because they may change while it is cached."""


class CompressedEntry(StoredEntry, gc=False, eq=False):
    """A `StoredEntry` that keeps `item` compressed. Each access decompresses it again."""

    _compressed: bytes = b""

    def __getattr__(self, name: str) -> bytes:
        if name != "item":
            raise AttributeError(name)
        return isal_zlib.decompress(self._compressed)


def compress(entry: StoredEntry) -> StoredEntry:
    """Return a compressed form of the entry, or the entry itself if it is smaller than 2 KiB or larger than 1 MiB."""
    if not SMALLEST <= entry.size <= LARGEST:
        return entry
    compressed = CompressedEntry(
        entry.key,
        entry.head,
        b"",
        entry.revision,
        entry.size,
        entry.lease,
        _compressed=isal_zlib.compress(entry.item, _LEVEL),
    )
    del compressed.item
    return compressed
