"""`Store`: the verbs of one resource over its storage, called by the endpoints and by the services.

Every method raises StatusError to reject a request. A kind with a different verb (Namespace's DELETE) subclasses it
and names the subclass in its definition. Each verb is implemented in a module of its own.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.registry import create, delete, deletecollection, update
from tetrapod.generic.registry.base_store import Stored
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import TranslatedRead
from tetrapod.generic.registry.hooks import NO_PRECONDITIONS, Transform, ValidateObject, ValidateUpdate
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.registry.update import UpdateOptions
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, Preconditions, Watch, WatchQuery
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import not_found


class Store(Stored):
    """The store of one resource."""

    @traced("registry get", detailed=True)
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        """Return the entry of an object. Raises StatusError, a 404 if it does not exist."""
        key = self.key(ctx, name)
        with TranslatedRead(self.resource, name, "get", self.path(key)):
            entry = await self.storage.get(key, resource_version)
        if entry is None:
            raise not_found(self.resource, name)
        return entry

    @traced("registry list", detailed=True)
    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        """Return one page of a list."""
        with TranslatedRead(self.resource, "", "list"):
            return await self.storage.list(query)

    @traced("registry watch", detailed=True)
    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        """Open a watch."""
        with TranslatedRead(self.resource, "", "watch"):
            return await self.storage.watch(query)

    @traced("registry create", detailed=True)
    async def create(self, ctx: Context, obj: Object, *, validate: ValidateObject | None = None) -> Entry:
        """Create an object; `obj` is modified. A dry run returns an entry that was not stored."""
        return await self.written(ctx, await create.create(self, ctx, obj, validate))

    @traced("registry update", detailed=True)
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
        """Update an object. `strategy` is that of a subresource.

        Returns:
            the stored entry, and whether it was created.
        """
        options = UpdateOptions(validate_create, validate_update, preconditions, strategy, force_create)
        entry, created = await update.update(self, ctx, name, transform, options)
        return await self.written(ctx, entry), created

    @traced("registry delete", detailed=True)
    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        """Delete an object. `options` is a DeleteOptions object.

        Returns:
            the object's current or last state, and whether it was removed.
        """
        return await delete.delete(self, ctx, name, options, validate)

    @traced("registry delete_collection", detailed=True)
    async def delete_collection(
        self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None
    ) -> ListPage:
        """Delete the matching objects.

        Return the list from before the deletion, with its resourceVersion and continue token.
        """
        return await deletecollection.delete_collection(self, ctx, options, query, validate)

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Return the entry to respond with after a create or update (or its dry run). Subclasses may hide fields."""
        return entry
