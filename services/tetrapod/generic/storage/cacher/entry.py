"""`StoredEntry`: one revision of one object, as the finished bytes and little else.

Ten thousand of them wait in memory for each one that is looked into, so what is derived (a parse, other representations) is kept
only for the entries touched last: `warm` is a process-wide queue bounded by the bytes it stands for, and by their time.

The bytes are kept in two parts, for that is how lists need them: items of a list do not say what they are, and cutting that off
costs a copy of each item (measured: 10 of 36 ms of a list of 29 MB).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from tetrapod.generic.storage.encoding import divided, respliced, splice
from tetrapod.machinery.gvk import Object

WARM_BYTES: Final = 4 << 20
"""Of objects as bytes; parsed they take about ten times as much."""
WARM_SECONDS: Final = 5.0
NO_LABELS: Final[Mapping[str, str]] = {}


class _Metadata(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


_decode_head = msgspec.json.Decoder(_Head).decode
_heads: dict[bytes, bytes] = {}
"""Each once: there are as many as kinds."""


class _Derived(msgspec.Struct, gc=False):
    """What has been made of an entry's bytes."""

    parsed: Object | None = None
    representations: dict[Any, Any] = msgspec.field(default_factory=dict)


class StoredEntry(msgspec.Struct, gc=False, eq=False):
    """Implements `Entry`. `lease` is the backend's, 0 for none.

    Python's collector of cycles passes entries by: they are in none, and it would look at thousands that every write leaves behind.
    """

    key: str
    head: bytes
    item: bytes
    revision: int
    lease: int = 0
    _labels: Mapping[str, str] | None = None
    _derived: _Derived | None = None

    @classmethod
    def of(cls, key: str, raw: bytes, revision: int, lease: int = 0) -> StoredEntry:
        """Of an object as it is sent."""
        head, item = divided(raw)
        return cls(key, _heads.setdefault(head, head), item, revision, lease)

    @classmethod
    def stored(cls, key: str, value: bytes, revision: int, lease: int = 0) -> StoredEntry:
        """Of a stored value. Raises CorruptObject, NotTransformable."""
        return cls.of(key, splice(value, revision), revision, lease)

    @property
    def raw(self) -> bytes:
        return self.head + self.item

    def object(self) -> Object:
        parsed: Object = orjson.loads(self.raw)
        return parsed

    def peek(self) -> Object:
        derived = self._warmed()
        if derived.parsed is None:
            derived.parsed = orjson.loads(self.raw)
        return derived.parsed

    @property
    def representations(self) -> dict[Any, Any]:
        return self._warmed().representations

    @property
    def labels(self) -> Mapping[str, str]:
        if self._labels is None:
            self._labels = self._head().labels or NO_LABELS
        return self._labels

    @property
    def uid(self) -> str:
        return self._head().uid

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def as_deleted(self, revision: int) -> StoredEntry:
        """This state, carrying the revision of its deletion."""
        return StoredEntry.of(self.key, respliced(self.raw, self.revision, revision), revision)

    def cool(self) -> None:
        self._derived = None

    def _head(self) -> _Metadata:
        return _decode_head(b"{" + self.item).metadata

    def _warmed(self) -> _Derived:
        if self._derived is None:
            self._derived = _Derived()
            warm.add(self)
        return self._derived


class _Warm:
    """The entries that have something derived, oldest first. What is here longer than some seconds goes, if it was long ago or not."""

    def __init__(self) -> None:
        self._entries: deque[tuple[StoredEntry, int]] = deque()
        self._bytes = 0
        self._added = 0  # since the last sweep
        self._sweeper: asyncio.TimerHandle | None = None

    def add(self, entry: StoredEntry) -> None:
        size = len(entry.item)
        self._entries.append((entry, size))
        self._bytes += size
        self._added += 1
        while self._bytes > WARM_BYTES and len(self._entries) > 1:
            self._cool_oldest()
        if self._sweeper is None or self._sweeper.cancelled():
            self._plan()

    def _cool_oldest(self) -> None:
        oldest, size = self._entries.popleft()
        self._bytes -= size
        oldest.cool()

    def _plan(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody serves: tools, tests
            return
        self._sweeper = loop.call_later(WARM_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Entries that were here at the last sweep already have had their time."""
        self._sweeper = None
        while len(self._entries) > self._added:
            self._cool_oldest()
        self._added = 0
        if self._entries:
            self._plan()


warm = _Warm()
