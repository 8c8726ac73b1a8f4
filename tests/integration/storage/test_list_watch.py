"""`StorageReflector`: the loop by which the services follow RBAC objects in storage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tetrapod.generic.authorization.list_watch import StorageReflector
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.generic.storage.wrappers import ForwardingBackend

KEY = "/registry/roles/ns/a"


class UnreliableProgress(ForwardingBackend):
    """A store such as etcd 3.4: consistent lists are read from it instead of the watch cache."""

    progress_reliable = False

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.get, self.range, self.put_if, self.delete_if = inner.get, inner.range, inner.put_if, inner.delete_if
        self.watch, self.close = inner.watch, inner.close


class Names:
    """A follower that keeps the names of the last list."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    def reset(self, entries: Sequence[Entry]) -> None:
        self.listed = [entry.name for entry in entries]

    def apply(self, event: WatchEvent) -> None:
        pass

    def lost(self) -> None:
        pass


async def test_objects_are_followed_once_an_unreadable_one_is_repaired() -> None:
    backend = UnreliableProgress(SqliteBackend(":memory:"))
    factory = CachingStorageFactory(backend)
    malformed = await backend.put_if(KEY, b'{"kind":"Role"', 0)
    names = Names()
    reflector = StorageReflector(factory.resource(StorageConfig("roles", "v1", "Role")), names)
    running = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait([running], timeout=0.5)
        assert not running.done()
        assert not reflector.synced.is_set()
        await backend.put_if(KEY, b'{"kind":"Role","apiVersion":"v1","metadata":{"name":"a"}}', malformed.revision)
        async with asyncio.timeout(10):
            await reflector.synced.wait()
        assert names.listed == ["a"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await factory.close()
        await backend.close()
