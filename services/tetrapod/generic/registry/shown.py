"""`ShownStore`: of a kind of which not all that is stored is shown to readers (upstream: a Store's Decorator)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.registry.hooks import Transform, ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.forwarding import ShownWatch
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, Watch, WatchQuery
from tetrapod.machinery.gvk import Object


class ShownStore(Store, ABC):
    """What an update is made of and compared with is the object as it is stored."""

    @abstractmethod
    def hides(self, item: bytes) -> bool:
        """Whether an object of these bytes may have something that is not shown: a list of others stays a join of bytes."""

    @abstractmethod
    def hide(self, obj: Object) -> bool:
        """Take out, in place, what is not shown; whether there was any."""

    def shown(self, entry: Entry) -> Entry:
        if not self.hides(entry.item):
            return entry
        made: Entry | None = entry.representations.get(self)
        if made is None:
            obj = entry.object()
            made = entry.representations[self] = Unstored(entry.key, obj, entry.revision) if self.hide(obj) else entry
        return made

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        return await self.written(ctx, await super().get(ctx, name, resource_version))

    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        page = await super().list(ctx, query)
        return page._replace(entries=list(map(self.shown, page.entries)))

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        return ShownWatch(await super().watch(ctx, query), self.shown)

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        entry, gone = await super().delete(ctx, name, options, validate)
        return self.shown(entry), gone

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        return self.shown(entry)


class HiddenStore(ShownStore):
    """What is not shown is not seen by who changes the object either: the strategy compares it, as part of the old object."""

    async def update(self, ctx: Context, name: str, transform: Transform, **options: Any) -> tuple[Entry, bool]:
        async def of_shown(current: Object | None) -> Object:
            if current is not None:
                self.hide(current)
            return await transform(current)

        return await super().update(ctx, name, of_shown, **options)
