"""UPDATE and PATCH of an object or a subresource: reads, transforms, validates and writes it.

An update may also create the object (depending on the kind, and by server-side apply). It removes the object if it
removes the last finalizer of one that is being deleted.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Update;
pkg/registry/rest/update.go, BeforeUpdate
"""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.registry import dryrun
from tetrapod.generic.registry.base_store import BaseStore
from tetrapod.generic.registry.context import Context, without_delay
from tetrapod.generic.registry.create import ensure_namespace, fill_system_fields, prepare, wipe_system_fields
from tetrapod.generic.registry.entry import Unstored, unstored
from tetrapod.generic.registry.errors import OPTIMISTIC_LOCK, Translated
from tetrapod.generic.registry.hand_written import in_form
from tetrapod.generic.registry.hooks import Allocation, Transform, ValidateObject, ValidateUpdate
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.copied import peeked
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyNotFound
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, Updated
from tetrapod.machinery import field
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.metadata import (
    validate_generate_name,
    validate_kube_finalizers,
    validate_object_meta,
    validate_object_meta_update,
)
from tetrapod.machinery.names import name_is_path_segment
from tetrapod.machinery.schema import empty_values
from tetrapod.machinery.status import StatusError, conflict, invalid

_COMPARISON: Final = Histogram(
    "apiserver_request_timestamp_comparison_time",
    "Time taken for comparison of old vs new objects in UPDATE or PATCH requests",
    ("code_path",),
    (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0),
)
_FAST, _SLOW, _EQUAL = ("unequal_objects_fast",), ("unequal_objects_slow",), ("equal_objects",)


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """The optional arguments of `Store.update`.

    Attributes:
        validate_create: validating admission if the update creates the object; None skips it.
        validate_update: validating admission if the object exists; None skips it.
        preconditions: the uid and resourceVersion that the stored object must have.
        strategy: the rules of a subresource; None uses those of the resource.
        force_create: whether to create a missing object even if the kind does not allow that.
    """

    validate_create: ValidateObject | None = None
    validate_update: ValidateUpdate | None = None
    preconditions: Preconditions = NO_PRECONDITIONS
    strategy: Strategy | None = None
    force_create: bool = False


class _DeletionReady(Exception):
    """The update removed the last finalizer of an object being deleted, so the object is removed instead of written."""


async def update(
    store: BaseStore, ctx: Context, name: str, transform: Transform, options: UpdateOptions
) -> tuple[Entry, bool]:
    """Update an object. Return the stored entry, and whether it was created.

    If the update removes the last finalizer of an object that is being deleted, the object is removed.

    Args:
        store: the store of the resource.
        ctx: the context of the request.
        name: the name of the object.
        transform: returns the object to store; called with a copy of the stored object, or None if it is absent, and
            again if another write came first.
        options: the validating admission, preconditions and rules of this update.

    Raises:
        StatusError: the object is invalid (422), does not exist (404), or was changed in between (409).
    """
    attempt = _Update(store, ctx, name, transform, options)
    try:
        entry = await attempt.run()
    except BaseException:
        await attempt.allocation.end(False)
        raise
    await attempt.allocation.end(True)
    return entry, attempt.created


class _Update:
    """One update with all its attempts: computes and validates the new object from each version of the stored object.

    Args:
        store: the store of the resource.
        ctx: the context of the request.
        name: the name of the object.
        transform: returns the object to store; called with a copy of the stored object, or None if it is absent.
        options: the validating admission, preconditions and rules of this update.

    Attributes:
        created: whether the last attempt creates the object.
        deletion: the object to respond with if the update removes the object; None otherwise.
    """

    def __init__(self, store: BaseStore, ctx: Context, name: str, transform: Transform, options: UpdateOptions) -> None:
        self.store, self.ctx, self.name, self.transform, self.options = store, ctx, name, transform, options
        self.strategy = options.strategy or store.strategy
        self.key = store.key(ctx, name)
        self.allocation = Allocation(self.strategy, ctx)
        self.created = False
        self.deletion: Unstored | None = None

    async def run(self) -> Entry:
        store, preconditions = self.store, self.options.preconditions
        allow_absent = self.strategy.allow_create_on_update or self.options.force_create
        with Translated(store.resource, self.name, "update", store.path(self.key, dry_run=self.ctx.dry_run)):
            try:
                if self.ctx.dry_run:
                    return await dryrun.guaranteed_update(
                        store.storage, self.key, self.attempt, preconditions, allow_absent
                    )
                return await store.storage.guaranteed_update(
                    self.key, self.attempt, preconditions=preconditions, allow_absent=allow_absent
                )
            except _DeletionReady:
                await self.allocation.end(False)
                return await self._remove()

    async def attempt(self, current: Object | None, entry: Entry | None) -> Updated:
        """Compute the new object from the stored one, and validate it; called by the storage (see `TryUpdate`).

        Args:
            current: a copy of the stored object, which may be modified; None if it does not exist.
            entry: the stored object's entry; None if it does not exist.

        Raises:
            _DeletionReady: the object must be removed instead.
            StatusError: the update is rejected.
        """
        if entry is None or current is None:
            return await self._create()
        self.created = False
        self.ctx.large = self.ctx.large or entry.size >= LARGE
        current, old = self.store.in_storage_version(current), self.store.in_storage_version(await peeked(entry))
        self.ctx.discard(old)
        new = await self.transform(current)
        self._check_version(new, entry.revision)
        await self.allocation.begin_update(new, old)
        await without_delay(self.ctx, before_update, self.store, self.strategy, self.ctx, new, old)
        await self._ignore_managed_fields_times(new, old)
        if self.options.validate_update is not None:
            await self.options.validate_update(new, old)
        await offloaded(self.ctx.large, self.strategy.read_back, new)
        if _deletes(new, old) and self.strategy.may_delete_on_update(new, old):
            self.deletion = await unstored(self.key, new, entry.revision, large=self.ctx.large)
            raise _DeletionReady
        return Updated(new, self.strategy.ttl(new) or None, self.ctx.large)

    async def _ignore_managed_fields_times(self, new: Object, old: Object) -> None:
        """Restore the old managedFields in `new` if the objects differ in nothing but the times of managedFields.

        The update then changes nothing. The time of the comparison is recorded in a metric. Large built-in objects are
        compared in a thread: `same` takes up to 200 ms for 1 MB with many nulls. `==` of custom resources takes 14 ms.

        Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go,
        IgnoreManagedFieldsTimestampsTransformer
        """
        started = time.monotonic()
        path = _FAST
        if _differ_in_times_only(new, old):
            custom = self.store.definition.custom
            equal = await offloaded(
                self.ctx.large and not custom,
                operator.eq if custom else same,
                _without_managed_fields(new),
                _without_managed_fields(old),
            )
            path = _EQUAL if equal else _SLOW
            if equal:
                new["metadata"]["managedFields"] = old["metadata"]["managedFields"]
        _COMPARISON.observe(path, time.monotonic() - started)

    async def _create(self) -> Updated:
        self.created = True
        obj = await self.transform(None)
        _revision(obj["metadata"].get("resourceVersion") or "0")
        wipe_system_fields(obj)
        fill_system_fields(obj)
        await self.allocation.begin_create(obj)
        await prepare(self.store, self.store.strategy, self.ctx, obj)
        if self.options.validate_create is not None:
            await self.options.validate_create(obj)
        await offloaded(self.ctx.large, self.store.strategy.read_back, obj)
        return Updated(obj, self.strategy.ttl(obj) or None, self.ctx.large)

    def _check_version(self, new: Object, stored: int) -> None:
        """Check the resourceVersion of the new object against `stored`, the revision of the stored one.

        If the kind allows updates without resourceVersion, a missing one is set.

        Raises:
            StatusError: 409 if it differs, 422 if it is missing and must not be, 500 if it is malformed.
        """
        meta = new["metadata"]
        revision = _revision(meta.get("resourceVersion") or "0")
        if revision == 0:
            if not self.strategy.allows_unconditional_update(self.ctx.version):
                error = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                # Upstream's error has no field for a resource, so the resource takes the place of the kind.
                raise invalid(GroupKind(*self.store.resource), self.name, [error])
            meta["resourceVersion"] = str(stored)
        elif revision != stored:
            raise conflict(self.store.resource, self.name, OPTIMISTIC_LOCK)

    async def _remove(self) -> Entry:
        """Remove the object from the store, and return it as the update would have stored it.

        If another request has removed it before, only return it.

        Raises:
            PreconditionFailed: its uid or resourceVersion is not the required one.
        """
        assert self.deletion is not None
        preconditions, storage = self.options.preconditions, self.store.storage
        try:
            if self.ctx.dry_run:
                await dryrun.delete(storage, self.key, preconditions, None)
            else:
                deleted = await storage.delete(self.key, preconditions=preconditions)
                await self.store.after_delete(self.ctx, deleted)
        except KeyNotFound:
            pass  # another update that removed finalizers at the same time was first
        return self.deletion


def _revision(text: str) -> int:
    """Parse a resourceVersion.

    Raises:
        StatusError: 500, as upstream, if it is not an unsigned integer.
    """
    try:
        return parse_uint(text)
    except ValueError as error:
        raise StatusError(500, "", str(error)) from None


def before_update(store: BaseStore, strategy: Strategy, ctx: Context, new: Object, old: Object) -> None:
    """Change `new` in place to the object that will replace `old`, and validate it, by the rules of `strategy`.

    Warnings are appended to `ctx.warnings`.

    Args:
        store: the store of the resource.
        strategy: the strategy of the resource, or of the subresource that is updated.
        ctx: the request.
        new: the object of the request.
        old: the stored object.

    Raises:
        StatusError: the object is invalid (422), or names another namespace (400).
    """
    meta, old_meta = new["metadata"], old["metadata"]
    ensure_namespace(meta, ctx.namespace if store.namespaced else "")
    _restore(meta, old_meta, "generation")
    if strategy.has_status:
        _restore(new, old, "status")
    strategy.prepare_for_update(ctx, new, old)
    strategy.gated_fields.drop(new, old)
    if strategy.generation is not None and _begins_generation(store, strategy, new, old):
        meta["generation"] = (old_meta.get("generation") or 0) + 1
    _restore_system_fields(meta, old_meta)
    with field.limited():
        errors = _update_errors(store, strategy, ctx, new, old)
    if errors:
        raise invalid(ctx.kind_in_errors(store.kind), meta.get("name") or "", errors)
    ctx.warnings.extend(strategy.warnings_on_update(ctx, new, old))
    strategy.canonicalize(new)


def _begins_generation(store: BaseStore, strategy: Strategy, new: Object, old: Object) -> bool:
    definition = store.definition
    if strategy.distinguishes_empty or definition.custom:
        return strategy.changes_generation(new, old)
    omitted = empty_values.omit(definition.schema(definition.storage_version), new)
    changed = strategy.changes_generation(new, old)
    empty_values.put_back(new, omitted)
    return changed


def _restore(new: Object, old: Object, name: str) -> None:
    if name in old:
        new[name] = copy_value(old[name])
    else:
        new.pop(name, None)


def _restore_system_fields(meta: Object, old_meta: Object) -> None:
    """Copy immutable system fields (uid, creationTimestamp, …) from the stored object's metadata to `meta`.

    A different uid in `meta` is kept, so that a later check rejects it.
    """
    if not meta.get("uid"):
        _restore(meta, old_meta, "uid")
    if old_meta.get("creationTimestamp"):
        meta["creationTimestamp"] = old_meta["creationTimestamp"]
    if old_meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = old_meta["deletionTimestamp"]
    if old_meta.get("deletionGracePeriodSeconds") is not None and meta.get("deletionGracePeriodSeconds") is None:
        meta["deletionGracePeriodSeconds"] = old_meta["deletionGracePeriodSeconds"]


def _update_errors(store: BaseStore, strategy: Strategy, ctx: Context, new: Object, old: Object) -> list[FieldError]:
    meta, old_meta = new["metadata"], old["metadata"]
    if strategy.metadata_rules == "none":
        return strategy.validate_update(ctx, new, old)
    errors = validate_object_meta(meta, store.namespaced, name_is_path_segment)
    errors += validate_object_meta_update(meta, old_meta)
    if strategy.revalidates_generate_name == "before finalizers":
        errors += validate_generate_name(meta, strategy.validate_name)
    if strategy.qualified_finalizers and strategy.metadata_rules == "kube":
        errors += validate_kube_finalizers(meta.get("finalizers") or [], "metadata.finalizers")
    if strategy.revalidates_generate_name == "after finalizers":
        errors += validate_generate_name(meta, strategy.validate_name)
    errors += strategy.validate_update(ctx, new, old) if ctx.mismatch is None else ctx.mismatch.errors
    errors = in_form(strategy.hand_written, errors, new)
    return errors if strategy.repeats_errors or len(errors) < 2 else field.distinct(errors)


def _deletes(new: Object, old: Object) -> bool:
    """Return whether the update completes a deletion.

    That is so if `new` has no finalizers, and `old` is being deleted without a remaining grace period.
    """
    old_meta = old["metadata"]
    if new["metadata"].get("finalizers") or not old_meta.get("deletionTimestamp"):
        return False
    return not old_meta.get("deletionGracePeriodSeconds")


def _differ_in_times_only(new: Object, old: Object) -> bool:
    """Return whether managedFields of both objects are not equal, and differ in nothing but their times.

    The comparison is fast, also of large objects.
    """
    entries, old_entries = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not old_entries or entries == old_entries or len(entries) != len(old_entries):
        return False
    return all(map(_same_but_time, entries, old_entries))


def _same_but_time(entry: dict[str, Any], old_entry: dict[str, Any]) -> bool:
    return {**entry, "time": None} == {**old_entry, "time": None}


def _without_managed_fields(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": None}}
