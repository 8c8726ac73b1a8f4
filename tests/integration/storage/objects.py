"""Objects, selectors and helpers for tests of storage."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from tetrapod.generic.storage.cacher import Cacher
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry, IndexedValue, Predicate
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import Watch, WatchEvent
from tetrapod.generic.storage.writes import TryUpdate, Updated
from tetrapod.machinery.gvk import Object

PODS = StorageConfig("pods", "v1", "Pod")


def pod(namespace: str, name: str, **labels: str) -> Object:
    metadata: Object = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4())}
    if labels:
        metadata["labels"] = labels
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


async def create(storage: Cacher, *keys: str, **labels: str) -> Entry:
    for key in keys:
        namespace, _, name = key.partition("/")
        entry = await storage.create(key, pod(namespace, name, **labels))
    return entry


def setting(**labels: str) -> TryUpdate:
    """Return an update that sets these labels."""

    async def change(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None
        obj["metadata"].setdefault("labels", {}).update(labels)
        return Updated(obj)

    return change


def labelled(**wanted: str) -> Predicate:
    return Predicate(labels=lambda labels: all(labels.get(name) == value for name, value in wanted.items()))


def in_zone(wanted: str, tested: list[str]) -> Predicate:
    """Return the selector of an indexed field, which is a label here. `tested` gets the keys of the tested entries."""

    def zone(entry: Entry) -> str:
        return entry.labels.get("zone", "")

    def matches(entry: Entry) -> bool:
        tested.append(entry.key)
        return zone(entry) == wanted

    return Predicate(fields=matches, index=IndexedValue("zone", wanted, zone))


def image(wanted: str) -> Predicate:
    return Predicate(fields=lambda entry: bool(entry.peek()["spec"]["containers"][0]["image"] == wanted))


def names(entries: Iterable[Entry]) -> list[str]:
    return [entry.key for entry in entries]


class Events:
    """Reads a watch, one event at a time."""

    def __init__(self, watch: Watch) -> None:
        self._batches = aiter(watch)
        self._events: list[WatchEvent] = []

    async def next(self, seconds: float = 10) -> WatchEvent:
        while not self._events:
            self._events = list(await asyncio.wait_for(anext(self._batches), seconds))
        return self._events.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(event.type, event.entry.key if event.entry is not None else "") for event in events]

    async def ends(self) -> bool:
        try:
            await self.next()
        except StopAsyncIteration:
            return True
        return False


@asynccontextmanager
async def watching(storage: Cacher, **query: Any) -> AsyncIterator[Events]:
    watch = await storage.watch(WatchQuery(**query))
    try:
        yield Events(watch)
    finally:
        watch.close()


async def reached(storage: Cacher, revision: int) -> None:
    """Wait until the cache has applied the event of `revision`."""
    await storage.ready()
    assert await storage._reflector.reach(revision, 10)
