"""`Entries`: the current objects of a resource, by key and in key order."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Final, NamedTuple

from tetrapod.generic.storage.backend import prefix_end
from tetrapod.generic.storage.cacher.entry import StoredEntry

FREED_AT_ONCE: Final = 1000
"""Entries that are freed in one step of the event loop, which takes 0.1 ms (measured)."""


class _Span(NamedTuple):
    """The first entries whose keys begin with `prefix` and are not less than `start`, and the number of all of them."""

    prefix: str
    start: str
    entries: list[StoredEntry]
    total: int


class Entries:
    """A dictionary of entries by key, which also keeps its keys in a sorted list.

    So the objects of a namespace are a slice of that list, and adding a key moves only pointers of the keys behind it.
    `get(key)` returns None for an absent key.
    """

    __slots__ = ("_by_key", "_keys", "_last_span", "get")

    def __init__(self) -> None:
        self._by_key: dict[str, StoredEntry] = {}
        self._keys: list[str] = []
        self.get = self._by_key.get
        self._last_span: _Span | None = None  # valid until the next change

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def average_size(self) -> int:
        """Return the average size of an object in bytes, estimated from the first 16; 0 if it has no entries."""
        entries = [self._by_key[key] for key in self._keys[:16]]
        return sum(len(entry.head) + entry.size for entry in entries) // len(entries) if entries else 0

    def append(self, entry: StoredEntry) -> None:
        """Add an entry whose key must be greater than all others."""
        self._by_key[entry.key] = entry
        self._keys.append(entry.key)

    def put(self, entry: StoredEntry) -> StoredEntry | None:
        """Add or replace an entry, and return the replaced one, or None if the key is new."""
        self._last_span = None
        previous = self._by_key.get(entry.key)
        self._by_key[entry.key] = entry
        if previous is None:
            insort(self._keys, entry.key)
        return previous

    def remove(self, key: str) -> StoredEntry | None:
        """Remove the entry of a key and return it, or None if it does not exist."""
        self._last_span = None
        previous = self._by_key.pop(key, None)
        if previous is not None:
            del self._keys[bisect_left(self._keys, key)]
        return previous

    def release(self) -> None:
        """Remove all entries, and free their memory over several steps of the event loop: 100,000 take 10 ms."""
        entries = list(self._by_key.values())
        self._by_key.clear()
        self._keys.clear()
        self._last_span = None
        _free(entries)

    def _span(self, prefix: str, start: str) -> tuple[int, int]:
        low = bisect_left(self._keys, max(prefix, start))
        return low, bisect_left(self._keys, prefix_end(prefix)) if prefix else len(self._keys)

    def revisions(self, first: str, last: str | None) -> dict[str, int]:
        """Return the resource versions, by key, of the entries from key `first` to `last` (included; None: the end)."""
        keys = self._keys
        high = len(keys) if last is None else bisect_right(keys, last)
        return {key: self._by_key[key].revision for key in keys[bisect_left(keys, first) : high]}

    def first(self, count: int, prefix: str, start: str = "") -> tuple[Sequence[StoredEntry], int]:
        """Return the first `count` entries of `within(prefix, start)`, and the total number of those entries."""
        last = self._last_span
        if last is None or last.prefix != prefix or last.start != start or len(last.entries) < min(count, last.total):
            low, high = self._span(prefix, start)
            by_key = self._by_key
            entries = [by_key[key] for key in self._keys[low : min(low + count, high)]]
            last = self._last_span = _Span(prefix, start, entries, max(high - low, 0))
        return last.entries if len(last.entries) <= count else last.entries[:count], last.total

    def within(self, prefix: str, start: str = "") -> Sequence[StoredEntry]:
        """Return the entries whose keys begin with `prefix` and are not less than `start`, in key order.

        The list may be returned to several callers and must not be modified. Later changes do not alter it.
        """
        return self.first(len(self._keys), prefix, start)[0]


def _free(entries: list[StoredEntry]) -> None:
    del entries[-FREED_AT_ONCE:]
    if entries:
        asyncio.get_running_loop().call_soon(_free, entries)
