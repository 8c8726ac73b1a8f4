"""`Store`: the verbs of one resource over its storage; what endpoints, and strategies' owners, call.

Every method raises StatusError for what it refuses. A kind whose verb differs altogether (Namespace's DELETE) subclasses it
and names the class in its definition. Follows k8s.io/apiserver/pkg/registry/generic/registry/store.go; each verb is a file
beside this one.
"""

from __future__ import annotations

from tetrapod.generic.registry import create, delete, deletecollection, update
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import TranslatedRead
from tetrapod.generic.registry.hooks import NO_PRECONDITIONS, Transform, ValidateObject, ValidateUpdate
from tetrapod.generic.registry.stored import Stored
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.registry.update import UpdateOptions
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, Preconditions, Watch, WatchQuery
from tetrapod.generic.tracing.spans import seen
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import not_found


class Store(Stored):
    @seen("registry get", detailed=True)
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        key = self.key(ctx, name)
        with TranslatedRead(self.resource, name, "get", self.path(key)):
            entry = await self.storage.get(key, resource_version)
        if entry is None:
            raise not_found(self.resource, name)
        return entry

    @seen("registry list", detailed=True)
    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        with TranslatedRead(self.resource, "", "list"):
            return await self.storage.list(query)

    @seen("registry watch", detailed=True)
    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        with TranslatedRead(self.resource, "", "watch"):
            return await self.storage.watch(query)

    @seen("registry create", detailed=True)
    async def create(self, ctx: Context, obj: Object, *, validate: ValidateObject | None = None) -> Entry:
        """`obj` is taken over. A dry run answers with an entry that was not stored."""
        return await self.written(ctx, await create.create(self, ctx, obj, validate))

    @seen("registry update", detailed=True)
    async def update(
        self,
        ctx: Context,
        name: str,
        transform: Transform,
        *,
        validate_create: ValidateObject | None = None,
        validate_update: ValidateUpdate | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        strategy: Strategy | None = None,
        force_create: bool = False,
    ) -> tuple[Entry, bool]:
        """Returns what is stored now, and whether it was created. `strategy` is a subresource's."""
        options = UpdateOptions(validate_create, validate_update, preconditions, strategy, force_create)
        entry, created = await update.update(self, ctx, name, transform, options)
        return await self.written(ctx, entry), created

    @seen("registry delete", detailed=True)
    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        """`options` is DeleteOptions. Returns the object as it is now or was last, and whether it is gone."""
        return await delete.delete(self, ctx, name, options, validate)

    @seen("registry delete_collection", detailed=True)
    async def delete_collection(self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None) -> ListPage:
        """Returns the objects as they were before, with the list's resourceVersion (and what a limit left)."""
        return await deletecollection.delete_collection(self, ctx, options, query, validate)

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """What a create or an update is answered with: what was stored, or in a dry run would have been."""
        return entry
