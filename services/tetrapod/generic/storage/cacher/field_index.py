"""`FieldIndex`: the objects of a watch cache by their value of the indexed field, such as the pods of each node.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/store/watch_cache_storage.go, GetByIndexSnapshot
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.entry import Entry, IndexedValue

FILL_SECONDS: Final = 0.001
"""Longest step of the event loop while an index is filled. Most of the time is spent on parsing the objects."""


class FieldIndex:
    """The entries of a watch cache by their value of the field that the strategy of the resource indexes.

    It is empty until a selector requires a value (`fill`), because most servers have no kubelets. Without it, the
    kubelet of each node would visit the pods of all nodes when it lists its own.

    Args:
        entries: the current entries of the cache. `update` must be called for each change of them.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._by_value: dict[str, Entries] = {}
        self._value_of: Callable[[Entry], str] | None = None  # None: no selector has required a value yet
        self._filled = False
        self._filling = asyncio.Lock()

    async def fill(self, value_of: Callable[[Entry], str]) -> None:
        """Fill the index if this is the first call, yielding to the event loop in between.

        Args:
            value_of: returns the value that an entry has; equivalent in all calls.
        """
        async with self._filling:
            if self._filled:
                return
            self._value_of = value_of
            timer = YieldTimer(FILL_SECONDS)
            for entry in self._entries.within(""):
                if self._entries.get(entry.key) is entry:  # otherwise `update` has been called for its key
                    self.update(None, entry)
                await timer.yield_if_due()
            self._filled = True

    def update(self, previous: StoredEntry | None, entry: StoredEntry | None) -> None:
        """Apply a change of an object.

        Args:
            previous: the entry before the change; None if the object has been created.
            entry: the entry after the change; None if the object has been deleted.
        """
        value_of = self._value_of
        if value_of is None:
            return
        value = None if entry is None else value_of(entry)
        if previous is not None and (former := value_of(previous)) != value:
            self._remove(former, previous.key)
        if entry is not None and value is not None:
            self._by_value.setdefault(value, Entries()).put(entry)

    def _remove(self, value: str, key: str) -> None:
        entries = self._by_value.get(value)
        if entries is not None:  # it is None if the index is being filled
            entries.remove(key)
            if not entries:
                del self._by_value[value]

    def within(self, required: IndexedValue, prefix: str, start: str = "") -> Sequence[StoredEntry] | None:
        """Return the entries that have a value, as `Entries.within` does; None if the index has not been filled.

        Args:
            required: the value.
            prefix: the beginning of the keys.
            start: the least key.
        """
        if not self._filled:
            return None
        entries = self._by_value.get(required.value)
        return () if entries is None else entries.within(prefix, start)
