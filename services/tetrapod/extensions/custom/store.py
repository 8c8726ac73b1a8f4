"""The `Store` of a custom resource: its watches can be ended, when the definition changes under them; a dry run converts there and back."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry, ResourceStorage, Watch, WatchQuery


class Rehearsing(ResourceStorage, Protocol):
    async def rehearsed(self, entry: Entry) -> Entry:
        """What would come back of an object if it were stored."""
        ...


class CustomStore(Store):
    def __init__(self, definition: ResourceDefinition, storage: Rehearsing) -> None:
        super().__init__(definition, storage)
        self._rehearsing = storage
        self._watches: WeakSet[Watch] = WeakSet()

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        watch = await super().watch(ctx, query)
        self._watches.add(watch)
        return watch

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        return await self._rehearsing.rehearsed(entry) if ctx.dry_run else entry

    def end_watches(self) -> None:
        """Clients watch again, and see objects by the new definition."""
        for watch in list(self._watches):
            watch.close()
