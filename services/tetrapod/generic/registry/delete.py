"""DELETE: preconditions, graceful deletion, finalizers and propagation.

An object without finalizers and grace period is removed at once. Otherwise it is only updated: deletionTimestamp is the
time when it may be removed, deletionGracePeriodSeconds its grace period.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Delete;
pkg/registry/rest/delete.go, BeforeDelete
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto

from tetrapod.generic.registry import dryrun
from tetrapod.generic.registry.base_store import BaseStore
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.propagation import deletion_finalizers
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.generic.storage.copied import copied, peeked
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyNotFound
from tetrapod.generic.storage.writes import Preconditions, Updated
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import conflict, not_found
from tetrapod.machinery.timestamps import format_time, now, now_rfc3339, parse


class Grace(Enum):
    """The effect of a delete request on an object's grace period.

    Attributes:
        NONE: no grace period applies. The object is removed now, or only marked as being deleted if it has finalizers.
        STARTED: the deletionTimestamp was set, or is now earlier because the period became shorter; write the object.
        PENDING: the object is being deleted already, and the requested period is not shorter; write nothing.
    """

    NONE = auto()
    STARTED = auto()
    PENDING = auto()


async def delete(
    store: BaseStore, ctx: Context, name: str, options: Object, validate: ValidateObject | None
) -> tuple[Entry, bool]:
    """Delete an object.

    Return its current or last state, and whether it was removed (False: it waits for finalizers or grace).

    Args:
        options: a DeleteOptions object. The strategy's grace period is written into it before `validate` is called.
        validate: called with the stored object, which it must not change, before it is marked or removed; it rejects by
            raising.

    Raises:
        StatusError: the object does not exist (404), a precondition does not hold (409), or the store fails.
    """
    key = store.key(ctx, name)
    with Translated(store.resource, name, "delete", store.path(key, dry_run=ctx.dry_run)):
        entry = await store.storage.get(key)
        if entry is None:
            raise not_found(store.resource, name)
        return await _Delete(store, ctx, key, options, validate).run(entry)


async def delete_unreadable(store: BaseStore, ctx: Context, name: str) -> None:
    """Delete an object that cannot be read, without regard to admission, finalizers and hooks.

    Upstream: pkg/registry/generic/registry/corrupt_obj_deleter.go

    Raises:
        StatusError: the object does not exist (404), it can be read (409), or the store fails.
    """
    key = store.key(ctx, name)
    with Translated(store.resource, name, "delete", store.path(key)):
        await store.storage.delete_unreadable(key, dry_run=ctx.dry_run)


class _Delete:
    """One delete request.

    Args:
        store: the store of the resource.
        ctx: the context of the request.
        key: the storage key of the object.
        options: the DeleteOptions, which are modified, because strategies write the grace period into them.
        validate: see `delete`.

    Attributes:
        waits: whether the object must not be removed yet.
        marked: the object after it was marked as being deleted; None if it was not.
    """

    def __init__(
        self, store: BaseStore, ctx: Context, key: str, options: Object, validate: ValidateObject | None
    ) -> None:
        self.store, self.ctx, self.key, self.options, self.validate = store, ctx, key, options, validate
        preconditions = options.get("preconditions") or {}
        self.preconditions = Preconditions(preconditions.get("uid"), preconditions.get("resourceVersion"))
        self.waits = False
        self.marked: Entry | None = None

    async def run(self, entry: Entry) -> tuple[Entry, bool]:
        obj = await copied(entry)
        grace = before_delete(self.store, self.ctx, obj, self.options)
        if grace is Grace.PENDING:
            return entry, False
        finalizers = obj["metadata"].get("finalizers") or []
        if (
            grace is Grace.STARTED
            or finalizers
            or deletion_finalizers(self.store.strategy, finalizers, self.options) is not None
        ):
            pending = await self._mark()
            if pending is None:
                return entry, False
            if self.waits:
                return pending, False
        return await self._remove(), True

    async def _mark(self) -> Entry | None:
        """Mark the object as being deleted, in the store, and return it as stored.

        Return the unchanged entry if the object needs no mark before its removal. Return None if it is being deleted
        already, and this request does not change that.

        Raises:
            KeyNotFound: the object does not exist.
            PreconditionFailed: its uid or resourceVersion is not the required one.
            StatusError: `validate` rejects the deletion.
        """
        storage = self.store.storage
        try:
            if self.ctx.dry_run:
                pending = await dryrun.guaranteed_update(storage, self.key, self._attempt, self.preconditions, False)
            else:
                pending = await storage.guaranteed_update(self.key, self._attempt, preconditions=self.preconditions)
        except _AlreadyDeleting:
            return None
        except _DeleteNow as now:
            if self.preconditions.resource_version is not None:
                # Upstream compares with the resourceVersion of an object that it has not read.
                self.preconditions = Preconditions(self.preconditions.uid, "")
            return now.entry
        self.marked = pending
        if self.preconditions.resource_version is not None and not self.ctx.dry_run:
            self.preconditions = Preconditions(self.preconditions.uid, str(pending.revision))
        return pending

    async def _attempt(self, obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None and entry is not None  # an absent object raises KeyNotFound before
        self.waits = False
        if self.validate is not None:
            await self.validate(await peeked(entry))
        grace = before_delete(self.store, self.ctx, obj, self.options)
        if grace is Grace.PENDING:
            raise _AlreadyDeleting
        meta = obj["metadata"]
        changed = deletion_finalizers(self.store.strategy, meta.get("finalizers") or [], self.options)
        if changed is not None:
            meta["finalizers"] = changed
            if not changed:
                del meta["finalizers"]
        pending = bool(meta.get("finalizers"))
        if grace is Grace.NONE:
            if not pending:
                raise _DeleteNow(entry)
            mark_as_deleting(meta)
        self.waits = pending or self.options["gracePeriodSeconds"] > 0
        return Updated(obj, large=entry.size >= LARGE)

    async def _remove(self) -> Entry:
        storage = self.store.storage
        if self.ctx.dry_run:
            return self.marked or await dryrun.delete(storage, self.key, self.preconditions, self.validate)
        validate = self.validate

        async def check(entry: Entry) -> None:
            if validate is not None:
                await validate(await peeked(entry))

        try:
            deleted = await storage.delete(self.key, preconditions=self.preconditions, validate=check)
        except KeyNotFound:
            if self.marked is None:
                raise
            deleted = self.marked  # a kubelet saw the mark and deleted the object first
        await self.store.after_delete(self.ctx, deleted)
        return deleted


class _AlreadyDeleting(Exception):
    """The object is being deleted already, and this request does not change it."""


class _DeleteNow(Exception):
    """The object can be removed without being marked as deleting first. `entry` is its stored revision."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


def before_delete(store: BaseStore, ctx: Context, obj: Object, options: Object) -> Grace:
    """Check the preconditions of a deletion and determine its effect on the object's grace period.

    If the period starts or becomes shorter, deletionTimestamp and deletionGracePeriodSeconds are set on `obj`.
    `options["gracePeriodSeconds"]` is set to the period, unless the result is `Grace.NONE`.

    Raises:
        StatusError: 409, a precondition does not hold.
    """
    meta = obj["metadata"]
    _check_preconditions(store, meta, options.get("preconditions") or {})
    if (options.get("gracePeriodSeconds") or 0) < 0:
        options["gracePeriodSeconds"] = 1
    if (meta.get("deletionGracePeriodSeconds") or 0) < 0:
        meta["deletionGracePeriodSeconds"] = 1
    if meta.get("deletionTimestamp"):
        return _again(meta, options)
    if not store.strategy.check_graceful_delete(ctx, obj, options):
        return Grace.NONE
    seconds: int = options["gracePeriodSeconds"]
    meta["deletionTimestamp"] = format_time(now() + timedelta(seconds=seconds))
    meta["deletionGracePeriodSeconds"] = seconds
    if meta.get("generation"):
        meta["generation"] += 1
    return Grace.STARTED


def _again(meta: Object, options: Object) -> Grace:
    """Return the effect of a delete request on an object that is being deleted already.

    Its grace period can only become shorter.

    Args:
        meta: the object's metadata, in which a shorter period is set.
        options: the DeleteOptions; if they have no period, the object's deletionGracePeriodSeconds is set.
    """
    remaining: int | None = meta.get("deletionGracePeriodSeconds")
    if not remaining:
        return Grace.NONE  # a period of 0 means that the removal that should have followed failed: do it now
    requested: int | None = options.get("gracePeriodSeconds")
    if requested is None:
        options["gracePeriodSeconds"] = remaining
        return Grace.PENDING
    if requested >= remaining:
        return Grace.PENDING
    meta["deletionTimestamp"] = format_time(parse(meta["deletionTimestamp"]) - timedelta(seconds=remaining - requested))
    meta["deletionGracePeriodSeconds"] = requested
    return Grace.STARTED


def _check_preconditions(store: BaseStore, meta: Object, wanted: Object) -> None:
    # Upstream puts the kind here, where all other error texts have the resource.
    kind = GroupResource(*store.kind)
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != meta.get("uid", ""):
        text = f"the UID in the precondition ({uid}) does not match the UID in record ({meta.get('uid', '')})"
        raise conflict(kind, meta["name"], f"{text}. The object might have been deleted and then recreated")
    if version is not None and version != meta.get("resourceVersion", ""):
        stored = meta.get("resourceVersion", "")
        text = (
            f"the ResourceVersion in the precondition ({version}) does not match "
            f"the ResourceVersion in record ({stored})"
        )
        raise conflict(kind, meta["name"], f"{text}. The object might have been modified")


def mark_as_deleting(meta: Object) -> None:
    """Mark an object without grace period as being deleted, in place, because finalizers prevent its removal."""
    due_now, stamp = now_rfc3339(), meta.get("deletionTimestamp")
    if not stamp and meta.get("generation"):
        meta["generation"] += 1
    if not stamp or stamp > due_now:
        meta["deletionTimestamp"] = due_now
    meta["deletionGracePeriodSeconds"] = 0
