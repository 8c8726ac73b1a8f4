"""`follow`: keeps a data structure in step with the objects of a resource.

It lists the resource and then watches it. Each change is applied as soon as the watch cache has it, without a task in
between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Final, Protocol

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import WatchEvent

log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 0.2


class ReflectorStore(Protocol):
    """A data structure that contains the objects of a resource (upstream: cache.ReflectorStore).

    `follow` sets `synced` once the structure contains all objects of the initial list.
    """

    synced: asyncio.Event

    def stored_keys(self) -> Collection[str]:
        """Return the storage keys of the objects that the structure contains."""
        ...

    def apply(self, events: Sequence[WatchEvent]) -> None:
        """Apply a batch of watch events: the initial list as ADDED events, then changes.

        Events without an entry must be ignored.
        """
        ...

    def drop(self, key: str) -> None:
        """Remove the object with a storage key, which was deleted while the watch was interrupted."""
        ...


async def follow(storage: ResourceStorage, store: ReflectorStore, description: str) -> None:
    """List and watch `storage`, and apply each change to `store`, until cancelled.

    When the watch ends or `storage` is unavailable, it lists and watches again. Other errors are passed on.

    Args:
        storage: the objects of the resource.
        store: the data structure in memory that is updated.
        description: names the objects in log messages, in the plural ("role bindings").
    """
    while True:
        try:
            await _follow(storage, store)
        except (Unavailable, OSError) as error:
            log.warning("%s cannot be watched: %s", description, error)
            await asyncio.sleep(_RETRY_SECONDS)


async def _follow(storage: ResourceStorage, store: ReflectorStore) -> None:
    watch = await storage.watch(WatchQuery(initial_events=True, bookmarks=True))
    listed: set[str] = set()
    try:
        async for batch in watch.initial():
            store.apply(batch)
            listed.update(event.entry.key for event in batch if event.entry is not None)
        for key in set(store.stored_keys()) - listed:
            store.drop(key)
        watch.subscribe(store.apply)
        store.synced.set()
        await watch.ended()
    finally:
        watch.close()
