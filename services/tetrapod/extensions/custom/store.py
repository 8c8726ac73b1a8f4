"""The `Store` of a custom resource: its watches can be ended, when the definition changes under them."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, ResourceStorage, Watch, WatchQuery
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, internal_error


class CustomStore(Store):
    """What a webhook must convert before it is read, and cannot, is a refusal of the read: nothing is deleted unseen."""

    def __init__(self, definition: ResourceDefinition, storage: ResourceStorage) -> None:
        super().__init__(definition, storage)
        self._watches: WeakSet[Watch] = WeakSet()

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        entry = await super().get(ctx, name, resource_version)
        await self._ready(ctx, (entry,))
        return entry

    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        page = await super().list(ctx, query)
        await self._ready(ctx, page.entries)
        return page

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        if self.definition.convert_many is not None:
            await self.get(ctx, name)
        return await super().delete(ctx, name, options, validate)

    async def _ready(self, ctx: Context, entries: Sequence[Entry]) -> None:
        if self.definition.convert_many is None or ctx.version in ("", self.definition.storage_version):
            return
        try:
            await Conversion(self.definition, ctx.version).ready(entries)
        except StatusError as refusal:
            raise internal_error(refusal.message) from refusal

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        watch = await super().watch(ctx, query)
        self._watches.add(watch)
        return watch

    def end_watches(self) -> None:
        """Clients watch again, and see objects by the new definition."""
        for watch in list(self._watches):
            watch.close()
