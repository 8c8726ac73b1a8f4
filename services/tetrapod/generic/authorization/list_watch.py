"""`StorageReflector`: a list and watch loop over one resource in storage, which runs as long as the process.

The auth service keeps its RBAC index and node graph up to date with it; the other services invalidate their rule
caches. It reads the store that all services share, so it needs neither the API nor permissions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import TooLargeResourceVersion, TooOldResourceVersion
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import ListQuery, WatchQuery
from tetrapod.generic.storage.unreadable import Unreadable
from tetrapod.generic.storage.watch import WatchEvent

log = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 5.0
_MOMENT: Final = 0.05


class Follower(Protocol):
    """The receiver of the objects and changes that `StorageReflector` reads from storage, such as an index of roles."""

    def reset(self, entries: Sequence[Entry]) -> None:
        """Receive all stored objects. They replace everything received before."""
        ...

    def apply(self, event: WatchEvent) -> None:
        """Receive an ADDED, MODIFIED or DELETED event."""
        ...

    def lost(self) -> None:
        """Receive the notice that the watch has ended, so that changes may be missed until the next `reset`."""
        ...


class StorageReflector:
    """A list and watch loop over the objects of one resource in storage, which passes them to a follower.

    Attributes:
        revision: the follower has received every change up to this revision. Bookmarks advance it too.
        changed: the revision of the last list or change that the follower received. If the reflector of another process
            has a `changed` or `revision` that is not lower, its follower has received the same changes.
        synced: set while the watch runs, after the first list.
    """

    def __init__(self, storage: ResourceStorage, follower: Follower) -> None:
        self._storage = storage
        self._follower = follower
        self._moved = asyncio.Condition()
        self.revision = 0
        self.changed = 0
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """List and watch until cancelled. After an error, retry with exponential backoff from 50 ms up to 5 seconds.

        An error is an unavailable store, a revision that it does not have, or an object that cannot be read.
        """
        wait = _FIRST_WAIT
        while True:
            try:
                await self._follow()
                wait = _FIRST_WAIT
            except (Unavailable, TooOldResourceVersion, TooLargeResourceVersion, OSError) as error:
                log.debug("following storage: %s", error)
            except Unreadable as error:
                log.error("following storage: %s", error)
            self._follower.lost()
            self.synced.clear()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def reach(self, revision: int) -> None:
        """Wait until the follower has received every change up to `revision`.

        If the watch takes longer than 50 ms, list all objects: an idle resource may send no event for long. The
        follower then gets them by `reset`, and the call returns.

        Raises:
            Unavailable: the list failed, because the store does not answer.
            Unreadable: the list failed, because an object cannot be read.
        """
        if self.revision >= revision:
            return
        try:
            async with asyncio.timeout(_MOMENT), self._moved:
                await self._moved.wait_for(lambda: self.revision >= revision)
        except TimeoutError:
            page = await self._storage.list(ListQuery())
            if int(page.resource_version) > self.revision:
                self._follower.reset(page.entries)
                await self._advance(int(page.resource_version), change=True)

    async def _follow(self) -> None:
        page = await self._storage.list(ListQuery())
        watch = await self._storage.watch(WatchQuery(resource_version=page.resource_version, bookmarks=True))
        try:
            if int(page.resource_version) >= self.revision:
                self._follower.reset(page.entries)
                await self._advance(int(page.resource_version), change=True)
            self.synced.set()
            async for batch in watch:
                if any(event.type == "ERROR" for event in batch):
                    return
                await self._apply(batch)
        finally:
            watch.close()

    async def _apply(self, batch: Sequence[WatchEvent]) -> None:
        # `reach` may be ahead of the watch
        changes = [e for e in batch if e.type != "BOOKMARK" and e.revision > self.revision]
        for event in changes:
            self._follower.apply(event)
        await self._advance(max((event.revision for event in batch), default=0), change=bool(changes))

    async def _advance(self, revision: int, *, change: bool) -> None:
        if revision <= self.revision:
            return
        self.revision = revision
        if change:
            self.changed = revision
        async with self._moved:
            self._moved.notify_all()
