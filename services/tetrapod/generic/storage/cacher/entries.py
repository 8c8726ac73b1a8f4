"""`Entries`: the present state of a resource, by key and in the order of keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.keys import prefix_end


class Entries:
    """A dictionary, and a sorted list of its keys: inserting moves a few pointers, a namespace is a slice."""

    __slots__ = ("_by_key", "_kept", "_keys", "get")

    def __init__(self, entries: Iterable[StoredEntry] = ()) -> None:
        self._by_key = {entry.key: entry for entry in entries}
        self._keys = sorted(self._by_key)
        self.get = self._by_key.get
        self._kept: tuple[str, str, list[StoredEntry]] | None = None  # what was listed last, while nothing changes

    def __len__(self) -> int:
        return len(self._by_key)

    def average_size(self) -> int:
        """Bytes of an object, by the first few."""
        sizes = [len(self._by_key[key].raw) for key in self._keys[:16]]
        return sum(sizes) // len(sizes) if sizes else 0

    def put(self, entry: StoredEntry) -> StoredEntry | None:
        """Returns what was there."""
        self._kept = None
        previous = self._by_key.get(entry.key)
        self._by_key[entry.key] = entry
        if previous is None:
            insort(self._keys, entry.key)
        return previous

    def remove(self, key: str) -> StoredEntry | None:
        self._kept = None
        previous = self._by_key.pop(key, None)
        if previous is not None:
            del self._keys[bisect_left(self._keys, key)]
        return previous

    def keys(self, prefix: str, start: str = "") -> Sequence[str]:
        """Keys that begin with `prefix`, from `start` on."""
        low = bisect_left(self._keys, max(prefix, start))
        high = bisect_left(self._keys, prefix_end(prefix)) if prefix else len(self._keys)
        return self._keys[low:high]

    def within(self, prefix: str, start: str = "") -> Sequence[StoredEntry]:
        """A snapshot, shared with others: nobody may change it."""
        kept = self._kept
        if kept is not None and kept[0] == prefix and kept[1] == start:
            return kept[2]
        by_key = self._by_key
        found = [by_key[key] for key in self.keys(prefix, start)]
        self._kept = (prefix, start, found)
        return found
