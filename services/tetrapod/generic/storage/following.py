"""Keeps somebody's picture of a resource up to date: what is there, then every change, within the storage's own step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Final, Protocol

from tetrapod.generic.storage.interface import ResourceStorage, WatchEvent, WatchQuery
from tetrapod.generic.unavailable import Unavailable

log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 0.2


class Picture(Protocol):
    """`synced` is set once all that was there is in the picture."""

    synced: asyncio.Event

    def known(self) -> Collection[str]:
        """The keys that are in it."""
        ...

    def apply(self, events: Sequence[WatchEvent]) -> None: ...

    def drop(self, key: str) -> None:
        """An object that was not there when the storage was looked at again."""
        ...


async def follow(storage: ResourceStorage, picture: Picture, what: str) -> None:
    """Until cancelled; `what` names the objects in the log."""
    while True:
        try:
            await _follow(storage, picture)
        except (Unavailable, OSError) as error:
            log.warning("%s cannot be watched: %s", what, error)
            await asyncio.sleep(_RETRY_SECONDS)


async def _follow(storage: ResourceStorage, picture: Picture) -> None:
    watch = await storage.watch(WatchQuery(initial_events=True, bookmarks=True))
    seen: set[str] = set()
    try:
        async for batch in watch.initial():
            picture.apply(batch)
            seen.update(event.entry.key for event in batch if event.entry is not None)
        for key in set(picture.known()) - seen:
            picture.drop(key)
        watch.subscribe(picture.apply)
        picture.synced.set()
        await watch.ended()
    finally:
        watch.close()
