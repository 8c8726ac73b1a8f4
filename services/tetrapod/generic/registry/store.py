"""`Store`: the verbs of one resource over its storage, called by the endpoints and by the services.

Every method raises StatusError to reject a request. A kind with a different verb (Namespace's DELETE) subclasses it
and names the subclass in its definition. Each verb is implemented in a module of its own.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.registry import create, delete, deletecollection, update
from tetrapod.generic.registry.base_store import BaseStore
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import TranslatedRead
from tetrapod.generic.registry.hooks import Transform, ValidateObject, ValidateUpdate
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.registry.update import UpdateOptions
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import internal_error, not_found


class Store(BaseStore):
    """The store of one resource, with a method for each verb, for requests and for the server itself.

    Objects are returned as entries (`Entry`): one stored revision of an object with its encoded JSON.
    """

    @traced("registry get", detailed=True)
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        """Return the entry of an object.

        Args:
            resource_version: "" means most recent, "0" means any, else at least this version.

        Raises:
            StatusError: 404 if it does not exist; 504 if the version was not reached in time; 500 if the version is
                malformed, or the object cannot be read.
        """
        key = self.key(ctx, name)
        with TranslatedRead(self.resource, name, "get", self.path(key)):
            entry = await self.storage.get(key, resource_version)
        if entry is None:
            raise not_found(self.resource, name)
        return entry

    @traced("registry list", detailed=True)
    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        """Return one page of a list.

        Raises:
            StatusError: 400 for a malformed version or token, 410 for one that was compacted, 504 if it was not reached
                in time.
        """
        with TranslatedRead(self.resource, "", "list"):
            return await self.storage.list(query)

    @traced("registry watch", detailed=True)
    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        """Open a watch, which the caller closes. A version that was compacted is reported by an ERROR event.

        Raises:
            StatusError: 500 for a malformed version, 504 if it was not reached in time.
        """
        with TranslatedRead(self.resource, "", "watch"):
            return await self.storage.watch(query)

    @traced("registry create", detailed=True)
    async def create(self, ctx: Context, obj: Object, *, validate: ValidateObject | None = None) -> Entry:
        """Create an object and return its entry; `obj` is modified. A dry run returns an entry that was not stored.

        Args:
            validate: validating admission, called with the new object, which it must not change. It rejects by raising;
                None skips it.

        Raises:
            StatusError: the object is invalid (422), or the name exists (409).
        """
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
        """Update an object: call `transform` with a copy of the stored one, validate its result, and store it.

        Args:
            transform: returns the object to store; called with a copy of the stored object, or None if it is absent,
                and again if another write came first.
            validate_create: validating admission if the update creates the object, called with the new object; None
                skips it.
            validate_update: validating admission if the object exists, called with the new and the stored object; None
                skips it.
            preconditions: the uid and resourceVersion that the stored object must have.
            strategy: the rules of a subresource; None uses those of the resource.
            force_create: create the object if it does not exist, even if the kind does not allow that (server-side
                apply).

        Returns:
            the stored entry (of a dry run: one that was not stored), and whether the object was created. If the update
            removes the last finalizer of an object that is being deleted, the object is removed.

        Raises:
            StatusError: the object is invalid (422), does not exist (404), or was changed in between (409).
        """
        options = UpdateOptions(validate_create, validate_update, preconditions, strategy, force_create)
        entry, created = await update.update(self, ctx, name, transform, options)
        return await self.written(ctx, entry), created

    @traced("registry delete", detailed=True)
    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        """Delete an object.

        Args:
            options: a DeleteOptions object. The grace period, and the uid of a namespace, are written into it before
                `validate` is called.
            validate: validating admission, called with the stored object, which it must not change. It rejects by
                raising; None skips it.

        Returns:
            the object's current or last state, and whether it was removed. False means that finalizers or a grace
            period delay the removal.

        Raises:
            StatusError: the object does not exist (404), or a precondition does not hold (409).
        """
        return await delete.delete(self, ctx, name, options, validate)

    @traced("registry delete", detailed=True)
    async def delete_unreadable(self, ctx: Context, name: str) -> None:
        """Delete an object that cannot be read, without regard to admission, finalizers and hooks.

        Raises:
            StatusError: the object does not exist (404), it can be read (409), or the kind does not allow it (500).
        """
        if not self.strategy.unsafe_deletion:
            text = "no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential"
            raise internal_error(text)
        await delete.delete_unreadable(self, ctx, name)

    @traced("registry delete_collection", detailed=True)
    async def delete_collection(
        self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None
    ) -> ListPage:
        """Delete the objects that match `query`, at most its limit (0: all), several at a time.

        Args:
            ctx: the request.
            options: the DeleteOptions.
            query: the selectors and the limit.
            validate: validating admission, called with each object; None for none.

        Returns:
            The deleted objects as they were before, with the resourceVersion of the list and, if there is a limit, its
            continue token.

        Raises:
            StatusError: the first rejection; objects deleted before remain deleted.
        """
        return await deletecollection.delete_collection(self, ctx, options, query, validate)

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Return the entry to respond with after a create or update (or its dry run). Subclasses hide fields here."""
        return entry
