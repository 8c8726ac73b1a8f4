"""`History`: extends the window of changes in the watch cache into the past, from the history of the store.

A cache has no changes from before it was filled. A watch may resume at an older resource version, because the cache
was filled at its first use, the server restarted, or many changes pushed old ones out. The store still has these
changes until it compacts them. They are read once for all waiting watches and added to the cache's `Window`, which
all watches share. kube-apiserver answers such a watch with 410, and the client lists again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Backend, BackendEvent, Compacted, KeyValue, prefix_end
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.entry import StoredEntry, compress
from tetrapod.generic.storage.cacher.window import Change
from tetrapod.generic.storage.unreadable import Unreadable

log = logging.getLogger(__name__)

TIMEOUT: Final = 5.0
"""Seconds within which the store must return the changes."""
OLDEST: Final = 2
"""The lowest revision since which changes can be requested. Revision 1 is that of an empty etcd, and no list returns
it. Clients send it to mean "long ago"; upstream answers 410.
"""


class _Incomplete(Exception):
    """The store cannot return every change since a revision."""


class History:
    """Extends the changes that `cache` keeps (its window) into the past, from the history of the store.

    Args:
        backend: the store.
        prefix: the prefix of the resource's keys.
        cache: the watch cache, whose window `reach` extends.
    """

    def __init__(self, backend: Backend, prefix: str, cache: Cache) -> None:
        self._backend = backend
        self._prefix = prefix
        self._cache = cache
        self._reading = asyncio.Lock()
        self._requested: list[int] = []
        self._oldest = OLDEST  # changes since an older revision have been found to be unavailable

    async def reach(self, revision: int) -> bool:
        """Extend the cache's window of changes to include every change after `revision`, unless it already does.

        Returns:
            False if that is impossible: the store has compacted some of these changes or returns them without the
                previous object, there are more of them than a window holds, or `revision` is below 2.

        Raises:
            Unavailable: the store did not answer in time.
        """
        self._requested.append(revision)
        try:
            async with self._reading:
                while self._oldest <= revision < self._cache.window.start:
                    await self._extend(min(requested for requested in self._requested if requested >= self._oldest))
                return revision >= self._cache.window.start
        finally:
            self._requested.remove(revision)

    async def _extend(self, revision: int) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                changes = await self._changes_since(revision)
        except (Compacted, _Incomplete) as error:
            compacted = error.revision if isinstance(error, Compacted) else 0
            self._oldest = max(revision + 1, compacted - 1)
            log.debug("%s has no history since revision %d: %s", self._prefix, revision, error)
        except TimeoutError:
            raise Unavailable("the store did not hand over its history in time") from None
        else:
            self._cache.window.extend(changes, revision)

    async def _changes_since(self, revision: int) -> list[Change]:
        """Return the changes after `revision` up to the start of the window, from the history of the store.

        The start of the window may advance while the store is read; the changes in between are read too.

        Raises:
            Compacted: the store no longer has the changes.
            _Incomplete: a change cannot be reconstructed, or there are too many.
        """
        if not self._backend.progress_reliable:
            raise _Incomplete("the store does not tell when a watch has caught up")
        changes = _Changes(self._cache, len(self._prefix))
        read = revision
        while read < self._cache.window.start:
            first, read = read + 1, self._cache.window.start
            events = self._backend.history(self._prefix, prefix_end(self._prefix), first, read)
            async with contextlib.aclosing(events):
                async for batch in events:
                    for event in batch:
                        changes.add(event)
        return changes.collected


class _Changes:
    """Collects changes from events of the store. Objects that are in the cache are not decoded a second time.

    Args:
        cache: the watch cache.
        prefix_length: the length of the resource's key prefix, which is cut off the keys of events.

    Attributes:
        collected: the changes, oldest first.
    """

    def __init__(self, cache: Cache, prefix_length: int) -> None:
        self._cache = cache
        self._prefix_length = prefix_length
        self._latest: dict[str, StoredEntry | None] = {}
        self.collected: list[Change] = []

    def add(self, event: BackendEvent) -> None:
        """Append the change of an event to `collected`. Events must be added in order.

        Raises:
            _Incomplete: the previous object is compacted or unreadable, or there are too many changes.
        """
        if len(self.collected) == self._cache.window.free:
            raise _Incomplete("more changes than a watch cache keeps")
        key = event.key[self._prefix_length :]
        try:
            previous = self._latest[key] if key in self._latest else self._previous(key, event)
            entry = None if event.value is None else self._entry(key, event.value, event.revision, event.lease)
        except Unreadable as error:
            raise _Incomplete(str(error)) from error
        self._latest[key] = entry
        if entry is not None or previous is not None:
            self.collected.append(Change(key, entry, previous, event.revision))

    def _previous(self, key: str, event: BackendEvent) -> StoredEntry | None:
        """Return the object before the event, or None if the event created it.

        Raises `_Incomplete` if it was compacted.

        Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/event.go, parseEvent
        """
        if event.created:
            return None
        if event.previous is None:
            raise _Incomplete(f"the object {key} before revision {event.revision} has been compacted")
        return self._entry(key, event.previous.value, event.previous.mod_revision, event.previous.lease)

    def _entry(self, key: str, value: bytes, revision: int, lease: int) -> StoredEntry:
        cached = self._cache.entries.get(key)
        if cached is not None and cached.revision == revision:
            return cached
        entry = self._cache.reader.read(key, KeyValue(key, value, revision, 0, lease))
        return compress(entry) if self._cache.compressed else entry
