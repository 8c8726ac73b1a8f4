"""`Mirror`: all objects of a resource as this process sees them now, each made into something of use once per revision.

Fed by a watch within the cacher's own step, so that what was written through this process is seen by the next request. For what
has to be looked at on every request and seldom changes: webhook configurations, policies. Upstream: an informer with its lister.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from tetrapod.generic.storage.following import follow
from tetrapod.generic.storage.interface import Entry, ResourceStorage, WatchEvent

log = logging.getLogger(__name__)

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
        await follow(self._storage, self, "objects")

    def known(self) -> Collection[str]:
        return self._by_key.keys()

    def apply(self, events: Sequence[WatchEvent]) -> None:
        for event in events:
            if event.entry is None:
                continue
            if event.type == "DELETED":
                self.drop(event.entry.key)
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

    def drop(self, key: str) -> None:
        if self._by_key.pop(key, None) is not None:
            self._tell()

    def _tell(self) -> None:
        self._sorted = None
        for listener in self.changed:
            listener()
