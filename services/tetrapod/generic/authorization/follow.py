"""Follows one resource in storage: everything that is there, then every change, for as long as the process lives.

The auth service keeps its RBAC index and node graph in step with this; the other services drop their rule caches by it.
It reads the store that all services share, so it needs no API and no permissions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from tetrapod.generic.storage.interface import (
    Entry,
    ListQuery,
    ResourceStorage,
    TooLargeResourceVersion,
    TooOldResourceVersion,
    WatchEvent,
    WatchQuery,
)
from tetrapod.generic.unavailable import Unavailable

log = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 5.0
_MOMENT: Final = 0.05


class Follower(Protocol):
    def reset(self, entries: Sequence[Entry]) -> None:
        """All that is stored; whatever was known before is void."""
        ...

    def apply(self, event: WatchEvent) -> None:
        """ADDED, MODIFIED or DELETED."""
        ...

    def lost(self) -> None:
        """Changes may go unseen until the next `reset`."""
        ...


class Following:
    """The loop, and how far it has come.

    `revision` is how much is known: no change up to it is missing. `changed` is what somebody else must know to know as much:
    the list and every change since, but not the progress of a store in which other things are written.
    """

    def __init__(self, storage: ResourceStorage, follower: Follower) -> None:
        self._storage = storage
        self._follower = follower
        self._moved = asyncio.Condition()
        self.revision = 0
        self.changed = 0
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """List and watch until cancelled."""
        wait = _FIRST_WAIT
        while True:
            try:
                await self._follow()
                wait = _FIRST_WAIT
            except (Unavailable, TooOldResourceVersion, TooLargeResourceVersion, OSError) as error:
                log.debug("following storage: %s", error)
            self._follower.lost()
            self.synced.clear()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def reach(self, revision: int) -> None:
        """Know everything up to `revision`: wait a moment for the watch, then look (an idle kind's watch says little)."""
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
        changes = [e for e in batch if e.type != "BOOKMARK" and e.revision > self.revision]  # `reach` may be ahead of the watch
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
