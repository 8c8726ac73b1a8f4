"""Follows one resource in storage: everything that is there, then every change, for as long as the process lives.

The auth service keeps its RBAC index and node graph in step with this; the other services drop their rule caches by it.
It reads the store that all services share, so it needs no API and no permissions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from tetrapod.generic.storage.backend import Unavailable
from tetrapod.generic.storage.interface import (
    Entry,
    ListQuery,
    ResourceStorage,
    TooLargeResourceVersion,
    TooOldResourceVersion,
    WatchEvent,
    WatchQuery,
)

log = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 5.0


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
    """The loop, and how far it has come."""

    def __init__(self, storage: ResourceStorage, follower: Follower) -> None:
        self._storage = storage
        self._follower = follower
        self._moved = asyncio.Condition()
        self.revision = 0
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

    async def reached(self, revision: int, seconds: float) -> bool:
        """Wait until `revision` has been seen; False if it takes longer."""
        if self.revision >= revision:
            return True
        try:
            async with asyncio.timeout(seconds), self._moved:
                await self._moved.wait_for(lambda: self.revision >= revision)
        except TimeoutError:
            return False
        return True

    async def _follow(self) -> None:
        page = await self._storage.list(ListQuery())
        watch = await self._storage.watch(WatchQuery(resource_version=page.resource_version, bookmarks=True))
        try:
            self._follower.reset(page.entries)
            await self._advance(int(page.resource_version))
            self.synced.set()
            async for batch in watch:
                revision = 0
                for event in batch:
                    if event.type == "ERROR":
                        return
                    revision = max(revision, event.revision)
                    if event.type != "BOOKMARK":
                        self._follower.apply(event)
                await self._advance(revision)
        finally:
            watch.close()

    async def _advance(self, revision: int) -> None:
        if revision > self.revision:
            self.revision = revision
            async with self._moved:
                self._moved.notify_all()
