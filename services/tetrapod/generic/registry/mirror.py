"""`Mirror`: all objects of a resource as this process sees them now, each made into something of use once per revision.

Fed by a watch within the cacher's own step, so that what was written through this process is seen by the next request. For what
has to be looked at on every request and seldom changes: webhook configurations, policies. Upstream: an informer with its lister.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from tetrapod.generic.storage.backend import Unavailable
from tetrapod.generic.storage.interface import Entry, ResourceStorage, WatchEvent, WatchQuery

log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 0.2

T = TypeVar("T")


class Mirror(Generic[T]):
    """`make` is called once for each revision of an object; what it raises is logged, and the object passed over."""

    def __init__(self, storage: ResourceStorage, make: Callable[[Entry], T]) -> None:
        self._storage = storage
        self._make = make
        self._by_key: dict[str, tuple[int, T]] = {}
        self._sorted: list[T] | None = []
        self.synced = asyncio.Event()
        self.changed: list[Callable[[], None]] = []

    @property
    def items(self) -> list[T]:
        """In the order of their keys. Not to be changed."""
        if self._sorted is None:
            self._sorted = [self._by_key[key][1] for key in sorted(self._by_key)]
        return self._sorted

    def get(self, key: str) -> T | None:
        found = self._by_key.get(key)
        return found[1] if found is not None else None

    async def run(self) -> None:
        """Follow the storage until cancelled."""
        while True:
            try:
                await self._follow()
            except (Unavailable, OSError) as error:
                log.warning("objects cannot be watched: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _follow(self) -> None:
        watch = await self._storage.watch(WatchQuery(initial_events=True, bookmarks=True))
        seen: set[str] = set()
        try:
            async for batch in watch.initial():
                self._apply(batch)
                seen.update(event.entry.key for event in batch if event.entry is not None)
            for key in self._by_key.keys() - seen:
                self._drop(key)
            watch.subscribe(self._apply)
            self.synced.set()
            await watch.ended()
        finally:
            watch.close()

    def _apply(self, events: Sequence[WatchEvent]) -> None:
        for event in events:
            if event.entry is None:
                continue
            if event.type == "DELETED":
                self._drop(event.entry.key)
            else:
                self._put(event.entry)

    def _put(self, entry: Entry) -> None:
        known = self._by_key.get(entry.key)
        if known is not None and known[0] >= entry.revision:
            return
        try:
            made = self._make(entry)
        except (KeyError, TypeError, ValueError) as error:
            log.error("object %s is malformed: %r", entry.key, error)
            return
        self._by_key[entry.key] = (entry.revision, made)
        self._tell()

    def _drop(self, key: str) -> None:
        if self._by_key.pop(key, None) is not None:
            self._tell()

    def _tell(self) -> None:
        self._sorted = None
        for listener in self.changed:
            listener()
