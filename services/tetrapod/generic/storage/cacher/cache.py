"""`Cache`: the watch cache of one resource: its entries, the window of recent changes, and the waiters for revisions.

It does no I/O.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from heapq import heappop, heappush

from tetrapod.generic.storage.backend import BackendEvent, KeyValue
from tetrapod.generic.storage.cacher.counters import CacheCounters
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry, compress
from tetrapod.generic.storage.cacher.entry_reader import EntryReader
from tetrapod.generic.storage.cacher.field_index import FieldIndex
from tetrapod.generic.storage.cacher.watching import Fanout
from tetrapod.generic.storage.cacher.window import MOST, Change, Window
from tetrapod.generic.storage.unreadable import NotDecodable

log = logging.getLogger(__name__)


class Cache:
    """The watch cache of one resource, filled by a `Reflector`.

    Every change up to `revision` has been applied. The content is usable only if `filled` is True.

    Args:
        prefix_length: the length of the resource's key prefix, which is cut off stored keys.
        counters: the metrics of the cache.
        window: the number of recent changes to keep.
        compressed: whether entries are kept compressed.
        reader: makes entries of stored values; None for one without defaults.

    Attributes:
        consistent: whether the last comparison with the store found no difference (`ConsistencyChecker`). Otherwise
            lists at former revisions are read from the store.
        forgotten: whether the cache was filled before, and a change that cannot be read made it unusable.
    """

    def __init__(
        self,
        prefix_length: int,
        counters: CacheCounters,
        reader: EntryReader,
        *,
        window: int = MOST,
        compressed: bool = False,
    ) -> None:
        self._prefix_length = prefix_length
        self.reader = reader
        self.counters = counters
        self._window_size = window
        self.compressed = compressed
        self.filled = self.forgotten = False
        self.consistent = True
        self.revision = 0
        self.entries = Entries()
        self.index = FieldIndex(self.entries)
        self.window = Window(0, most=window, counters=counters)
        self.fanout = Fanout(lambda: self.revision, counters)
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []

    def replace(self, entries: Entries, revision: int) -> None:
        """Replace the content of the cache with all objects as of `revision`, and mark it as filled.

        Open watches end, because the changes in between are unknown.
        """
        former, self.entries = self.entries, entries
        self.index = FieldIndex(entries)
        former.release()
        self.window = Window(revision, most=self._window_size, counters=self.counters)
        self.filled, self.forgotten = True, False
        self.fanout.close()
        self.reader.forget_writes()
        self.advance(revision)

    def forget(self) -> None:
        """Mark the cache as not filled and end open watches, because it can neither be updated nor reloaded for now."""
        self.filled, self.forgotten = False, self.filled or self.forgotten
        self.fanout.close()

    def apply(self, events: Sequence[BackendEvent]) -> None:
        """Apply events of the store, in order, and deliver them to the watches.

        Events that were applied before are skipped. An empty sequence is a progress notification of the store,
        which is only counted.

        Raises:
            Unreadable: a value cannot be read.
        """
        if not events:
            self.counters.bookmarks += 1
            self.counters.dispatched += 1
            return
        received_at = time.monotonic()
        self.counters.received += len(events)
        changes = []
        for event in events:
            if event.revision > self.revision and (change := self._change(event)) is not None:
                self.window.append(change)
                changes.append(change)
        if changes:
            self.revision = max(self.revision, changes[-1].revision)
            self.counters.dispatched += len(changes)
            self.fanout.deliver(changes, received_at)
            for change in changes:
                if change.previous is not None:
                    # Parsed forms of replaced objects are unlikely to be needed again.
                    change.previous.drop_derived_data()

    def _change(self, event: BackendEvent) -> Change | None:
        key = event.key[self._prefix_length :]
        if event.value is None:
            entry, previous = None, self.entries.remove(key)
            if previous is None:
                return None
        else:
            entry = self.entry(KeyValue(event.key, event.value, event.revision, 0, event.lease))
            previous = self.entries.put(entry)
        self.index.update(previous, entry)
        return Change(key, entry, previous, event.revision)

    def entry(self, kv: KeyValue) -> StoredEntry:
        """Return a key of the store as an entry of this cache, without adding it.

        A value that cannot be decoded is logged and counted.

        Raises:
            NotTransformable: the value cannot be decrypted.
            NotDecodable: the value is not an object.
        """
        try:
            entry = self.reader.read(kv.key[self._prefix_length :], kv)
        except NotDecodable as error:
            log.error("%s cannot be served: %s", kv.key, error)
            self.counters.undecodable += 1
            raise
        return compress(entry) if self.compressed else entry

    def revisions(self, first: str, last: str | None, revision: int) -> dict[str, int] | None:
        """Return the resource versions, by key, that the objects from key `first` to `last` had at a revision.

        Args:
            first: the first key.
            last: the last key, included; None for all keys from `first` on.
            revision: a revision that the cache has reached.

        Returns:
            None if the window does not reach back to the revision.
        """
        undo = self.window.undo(revision)
        if undo is None:
            return None
        versions = self.entries.revisions(first, last)
        for key, entry in undo.items():
            if first <= key and (last is None or key <= last):
                if entry is None:
                    versions.pop(key, None)
                else:
                    versions[key] = entry.revision
        return versions

    def advance(self, revision: int) -> None:
        """Record that every change up to `revision` has been applied, and wake the waiters for it."""
        self.revision = max(self.revision, revision)
        while self._waiters and self._waiters[0][0] <= self.revision:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)

    def reached(self, revision: int) -> asyncio.Future[None]:
        """Return a future that the next call of `advance` with at least `revision` completes.

        The caller must check first that the cache has not reached the revision yet. If it has, the future stays pending
        until the next call of `advance`.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiters, (revision, id(future), future))
        return future

    @property
    def awaited(self) -> bool:
        """Whether a reader waits for a revision that has not been reached (see `reached`)."""
        while self._waiters and self._waiters[0][2].done():
            heappop(self._waiters)
        return bool(self._waiters)
