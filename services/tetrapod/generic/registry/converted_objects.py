"""`ConvertedObjects`: all objects of a resource, each converted once per revision, such as parsed.

A watch updates it as soon as the watch cache has a change, so that the next request sees every write of this process.
It is meant for objects that every request needs and that seldom change: webhook configurations, policies.
Upstream: an informer with its lister
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.following import follow
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.watch import WatchEvent

log = logging.getLogger(__name__)

T = TypeVar("T")


class ConvertedObjects(Generic[T]):
    """The converted objects of one resource.

    The functions in `changed` are called after each change. `synced` is set when all objects have been read.

    Args:
        storage: the storage of the resource.
        make: converts an object. It is called once for each revision. If it raises KeyError, TypeError or ValueError,
            the error is logged and the former revision of the object, if any, remains.
    """

    def __init__(self, storage: ResourceStorage, make: Callable[[Entry], T]) -> None:
        self._storage = storage
        self._make = make
        self._by_key: dict[str, tuple[int, T]] = {}
        self._sorted: list[T] | None = []
        self.synced = asyncio.Event()
        self.changed: list[Callable[[], None]] = []

    @property
    def items(self) -> list[T]:
        """The converted objects in the order of their keys. The list is shared and must not be modified."""
        if self._sorted is None:
            self._sorted = [self._by_key[key][1] for key in sorted(self._by_key)]
        return self._sorted

    def get(self, key: str) -> T | None:
        """Return the converted object with this key (`ns/name` or `name`), or None."""
        item = self._by_key.get(key)
        return item[1] if item is not None else None

    async def run(self) -> None:
        """Follow the storage until cancelled. Before the first read, `items` is empty."""
        await follow(self._storage, self, "objects")

    def stored_keys(self) -> Collection[str]:
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
        converted = self._by_key.get(entry.key)
        if converted is not None and converted[0] >= entry.revision:
            return
        try:
            item = self._make(entry)
        except (KeyError, TypeError, ValueError) as error:
            log.error("object %s is malformed: %r", entry.key, error)
            return
        self._by_key[entry.key] = (entry.revision, item)
        self._notify()

    def drop(self, key: str) -> None:
        if self._by_key.pop(key, None) is not None:
            self._notify()

    def _notify(self) -> None:
        self._sorted = None
        for listener in self.changed:
            listener()
