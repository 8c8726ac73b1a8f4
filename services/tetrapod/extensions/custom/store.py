"""The `Store` of a custom resource.

Its watches can be ended when the definition changes, and a dry run converts an object to the storage version and back.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import Watch


class DryRunStorage(ResourceStorage, Protocol):
    """A storage of custom resources that can return how an object would read after a write, without storing it."""

    async def dry_run(self, entry: Entry) -> Entry:
        """Return the entry as it would be read back if it were stored, without storing it."""
        ...


class CustomStore(Store):
    """A `Store` for the objects of a custom resource, whose watches can be ended when its definition changes.

    The storage converts, defaults and prunes the objects. If all versions can share one storage, the resource has one
    store; otherwise each version has its own. A dry run returns the object as it would be read back.

    Args:
        definition: the resource definition of the custom resource, or of one version if each version has a store.
        storage: reads and writes the objects. It returns them in the storage version, or in the version of this store.
    """

    def __init__(self, definition: ResourceDefinition, storage: DryRunStorage) -> None:
        super().__init__(definition, storage)
        self._dry_run_storage = storage
        self._watches: WeakSet[Watch] = WeakSet()

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        watch = await super().watch(ctx, query)
        self._watches.add(watch)
        return watch

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        return await self._dry_run_storage.dry_run(entry) if ctx.dry_run else entry

    def end_watches(self) -> None:
        """End all open watches of this store. Clients then watch again and get objects of the new definition."""
        for watch in list(self._watches):
            watch.close()
