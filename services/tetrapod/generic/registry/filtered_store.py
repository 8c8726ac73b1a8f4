"""`FilteredStore`: the store of a kind whose stored objects contain fields that readers do not see.

Upstream: a Store's Decorator
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import changed_entry
from tetrapod.generic.registry.hooks import Transform, ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.wrappers import MappedWatch
from tetrapod.machinery.gvk import Object


class FilteredUpdateStore(Store, ABC):
    """A store that removes some stored fields, the hidden ones, from all responses. Subclasses define them by `hide`.

    The object from which an update or patch starts still has these fields.
    """

    @abstractmethod
    def may_contain_hidden(self, item: bytes) -> bool:
        """Return False if an object certainly has no hidden fields, so that it need not be parsed.

        If the result is True, the object is parsed and passed to `hide`, which may find no such field.

        Args:
            item: the JSON of the object without its type (`Entry.item`).
        """

    @abstractmethod
    def hide(self, obj: Object) -> bool:
        """Remove hidden fields from `obj` in place, and return whether there were any."""

    def without_hidden(self, entry: Entry) -> Entry:
        """Return the entry without hidden fields; the same entry if it has none. The result is cached in the entry."""
        return changed_entry(entry, self, self.hide) if self.may_contain_hidden(entry.item) else entry

    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        return await self.written(ctx, await super().get(ctx, name, resource_version))

    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        page = await super().list(ctx, query)
        return page._replace(entries=list(map(self.without_hidden, page.entries)))

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        return MappedWatch(await super().watch(ctx, query), self.without_hidden)

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        entry, removed = await super().delete(ctx, name, options, validate)
        return self.without_hidden(entry), removed

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        return self.without_hidden(entry)


class FilteredStore(FilteredUpdateStore):
    """A store that also removes hidden fields from the object that an update or patch starts from.

    A patch therefore cannot see them, and removes them unless it sends them. An apply that changes nothing keeps them,
    because upstream then keeps the stored object. The strategy still sees them in the old object.

    The store is only for kinds whose objects mutating admission does not change.
    """

    async def update(self, ctx: Context, name: str, transform: Transform, **options: Any) -> tuple[Entry, bool]:
        async def of_shown(current: Object | None) -> Object:
            if current is None:
                return await transform(None)
            stored = await ctx.copy(current)
            if not self.hide(current):
                return await transform(current)
            new = await transform(current)
            return stored | {"metadata": new["metadata"]} if ctx.unchanged else new

        return await super().update(ctx, name, of_shown, **options)
