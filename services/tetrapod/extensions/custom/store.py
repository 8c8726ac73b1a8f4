"""The `Store` of a custom resource: its watches can be ended, when the definition changes under them."""

from __future__ import annotations

from weakref import WeakSet

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import ResourceStorage, Watch, WatchQuery


class CustomStore(Store):
    def __init__(self, definition: ResourceDefinition, storage: ResourceStorage) -> None:
        super().__init__(definition, storage)
        self._watches: WeakSet[Watch] = WeakSet()

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        watch = await super().watch(ctx, query)
        self._watches.add(watch)
        return watch

    def end_watches(self) -> None:
        """Clients watch again, and see objects by the new definition."""
        for watch in list(self._watches):
            watch.close()
