"""CREATE: sets system metadata, generates names, runs the strategy's hooks and validation, and stores the object.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.Create;
pkg/registry/rest/create.go, BeforeCreate
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.registry.base_store import BaseStore
from tetrapod.generic.registry.context import Context, without_delay
from tetrapod.generic.registry.entry import unstored
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hand_written import in_form
from tetrapod.generic.registry.hooks import Allocation, ValidateObject
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyExists
from tetrapod.generic.storage.unreadable import Unreadable
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.field import FieldError, distinct, limited
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_kube_object_meta, validate_object_meta
from tetrapod.machinery.names import name_is_path_segment
from tetrapod.machinery.status import StatusError, already_exists, bad_request, generate_name_conflict, invalid
from tetrapod.machinery.timestamps import now_rfc3339
from tetrapod.machinery.uids import new_uid

_MAX_NAME_ATTEMPTS: Final = 8
"""The number of random names to try for a generateName. With a million existing names, eight attempts fail in one of a
thousand creates (upstream's calculation).
"""
_NAMESPACE_MISMATCH: Final = "the namespace of the provided object does not match the namespace sent on the request"


async def create(store: BaseStore, ctx: Context, obj: Object, validate: ValidateObject | None) -> Entry:
    """Create an object and return its entry, the stored revision with its JSON; `obj` is modified.

    If a generated name is taken, try again with another one. A large object is not copied for further attempts: its
    name is looked up beforehand. In a dry run, the entry is not stored.

    Args:
        validate: called with the object after the strategy's validation; it rejects the create by raising. None: no
            check.

    Raises:
        StatusError: the object is invalid (422), the name exists (409), or the store fails.
    """
    meta = obj.get("metadata") or {}
    if meta.get("name") or not meta.get("generateName"):
        return await _create(store, ctx, obj, validate)
    if ctx.large:
        await _choose_unused_name(store, ctx, meta)
        return await _create(store, ctx, obj, validate)
    for _ in range(_MAX_NAME_ATTEMPTS - 1):
        try:
            return await _create(store, ctx, copy_object(obj), validate)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
    return await _create(store, ctx, obj, validate)


async def _choose_unused_name(store: BaseStore, ctx: Context, meta: Object) -> None:
    """Set a generated name that no stored object has, or a random one if every attempt was taken.

    Copying an object of a million members for each attempt would double the memory of the request.

    Args:
        meta: the metadata of the object, with generateName; modified.

    Raises:
        StatusError: the store fails.
    """
    for _ in range(_MAX_NAME_ATTEMPTS):
        meta["name"] = store.strategy.generate_name(meta["generateName"])
        if name_is_path_segment(meta["name"], False) or not await _is_taken(store, ctx, meta["name"]):
            return


async def _is_taken(store: BaseStore, ctx: Context, name: str) -> bool:
    """Return whether a stored object, readable or not, has this name.

    Raises:
        StatusError: the store fails.
    """
    key = store.key(ctx, name)
    with Translated(store.resource, name, "create", store.path(key)):
        try:
            return await store.storage.get(key) is not None
        except Unreadable:
            return True


def _is_revision(text: str) -> bool:
    try:
        return parse_uint(text) > 0
    except ValueError:
        return False


async def _create(store: BaseStore, ctx: Context, obj: Object, validate: ValidateObject | None) -> Entry:
    strategy = store.strategy
    version = (obj.get("metadata") or {}).get("resourceVersion") or ""
    meta = fill_system_fields(obj)
    if version and _is_revision(version) and not ctx.dry_run:
        validate = _then_reject(validate)
    if not meta.get("name") and (base := meta.get("generateName")):
        meta["name"] = strategy.generate_name(base)
    if not store.allocates_on_create:
        await prepare(store, strategy, ctx, obj)
        return await _admitted_and_stored(store, ctx, obj, validate)
    allocation = Allocation(strategy, ctx)
    await allocation.begin_create(obj)
    try:
        await prepare(store, strategy, ctx, obj)
        entry = await _admitted_and_stored(store, ctx, obj, validate)
    except BaseException:
        await allocation.end(False)
        raise
    await allocation.end(True)
    return entry


def _then_reject(validate: ValidateObject | None) -> ValidateObject:
    """Return a validation that calls `validate`, and then rejects the object because it has a resourceVersion.

    Upstream rejects it in storage, after all other checks (ErrResourceVersionSetOnCreate, a 500).
    """

    async def reject(obj: Object) -> None:
        if validate is not None:
            await validate(obj)
        raise bad_request("resourceVersion should not be set on objects to be created")

    return reject


async def _admitted_and_stored(store: BaseStore, ctx: Context, obj: Object, validate: ValidateObject | None) -> Entry:
    if validate is not None:
        await validate(obj)
    await offloaded(ctx.large, store.strategy.read_back, obj)
    return await _store(store, ctx, obj)


async def _store(store: BaseStore, ctx: Context, obj: Object) -> Entry:
    name = obj["metadata"]["name"]
    key = store.key(ctx, name)
    try:
        with Translated(store.resource, name, "create", store.path(key)):
            if not ctx.dry_run:
                return await store.storage.create(key, obj, store.strategy.ttl(obj), large=ctx.large)
            if await store.storage.get(key) is not None:
                raise KeyExists(key)
            return await unstored(key, obj, large=ctx.large)
    except StatusError as error:
        if error.reason == "AlreadyExists":
            raise await _already_exists(store, key, obj) from error
        raise


async def _already_exists(store: BaseStore, key: str, obj: Object) -> StatusError:
    """Return, not raise, the error for a name that exists.

    It says if the name was generated, and if the existing object is being deleted. The latter is left out if the store
    does not answer or that object cannot be read.

    Args:
        store: the store of the resource.
        key: the storage key of the name.
        obj: the object to create.
    """
    meta = obj["metadata"]
    generated = bool(meta.get("generateName"))
    error = (
        generate_name_conflict(store.resource, meta["name"], 1)
        if generated
        else already_exists(store.resource, meta["name"])
    )
    try:
        existing = await store.storage.get(key)
    except (StatusError, Unreadable, Unavailable):
        return error
    if existing is not None and existing.peek()["metadata"].get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error


def wipe_system_fields(obj: Object) -> None:
    """Remove the metadata that a client must not set in a create request, in place.

    Upstream: rest.WipeObjectMetaSystemFields
    """
    metadata = obj["metadata"]
    for name in ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)


def fill_system_fields(obj: Object) -> Object:
    """Set a new uid and the creation time on an object, adding metadata if it is missing.

    Return its metadata, not a copy.
    """
    meta: Object | None = obj.get("metadata")
    if not meta:
        meta = obj["metadata"] = {}
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = now_rfc3339()
    return meta


async def prepare(store: BaseStore, strategy: Strategy, ctx: Context, obj: Object) -> None:
    """Run `before_create` with these arguments, in a thread if the object is large.

    Raises:
        StatusError: the object is invalid (422), or names another namespace (400).
    """
    await without_delay(ctx, before_create, store, strategy, ctx, obj)


def before_create(store: BaseStore, strategy: Strategy, ctx: Context, obj: Object) -> None:
    """Change `obj` in place to the object that will be stored, and validate it, by the rules of `strategy`.

    Warnings are appended to `ctx.warnings`.

    Args:
        store: the store of the resource.
        strategy: the strategy of the resource.
        ctx: the request.
        obj: the object of the request.

    Raises:
        StatusError: the object is invalid (422), or names another namespace (400).
    """
    meta = obj["metadata"]
    ensure_namespace(meta, ctx.namespace if store.namespaced else "")
    if strategy.has_status:
        _reset_status(strategy, obj)
    if strategy.generation is not None:
        meta["generation"] = 1
    strategy.prepare_for_create(ctx, obj)
    strategy.gated_fields.drop(obj, {})
    with limited():
        errors = creation_errors(strategy, ctx, obj, namespaced=store.namespaced)
    if errors:
        raise invalid(ctx.kind_in_errors(store.kind), meta.get("name") or "", errors)
    ctx.warnings.extend(strategy.warnings_on_create(ctx, obj))
    strategy.canonicalize(obj)


def creation_errors(strategy: Strategy, ctx: Context, obj: Object, *, namespaced: bool) -> list[FieldError]:
    """Return the errors of a new object and of its metadata, in upstream's order."""
    meta = obj["metadata"]
    if ctx.mismatch is not None:
        return ctx.mismatch.errors
    if strategy.metadata_rules == "late":
        errors = strategy.validate(ctx, obj) or validate_object_meta(meta, namespaced, name_is_path_segment)
    else:
        kube = strategy.qualified_finalizers and strategy.metadata_rules == "kube"
        validate_meta = validate_kube_object_meta if kube else validate_object_meta
        own = strategy.metadata_rules == "own"
        errors = [] if own else validate_meta(meta, namespaced, strategy.validate_name)
        errors += strategy.validate(ctx, obj)
        if not errors and _has_odd_name(meta):  # kinds whose own name validation accepts anything
            errors = validate_object_meta(meta, namespaced, name_is_path_segment)
    # Kinds with partly declarative validation: upstream's filtering of those errors removes duplicates.
    errors = in_form(strategy.hand_written, errors, obj)
    return distinct(errors) if errors and strategy.qualified_finalizers else errors


def _has_odd_name(meta: Object) -> bool:
    """Return whether the name or the base for generated names cannot be a segment of a path."""
    base = meta.get("generateName")
    return bool(name_is_path_segment(meta["name"], False) or (base and name_is_path_segment(base, True)))


def _reset_status(strategy: Strategy, obj: Object) -> None:
    if strategy.initial_status is None:
        obj.pop("status", None)
    else:
        obj["status"] = copy_object(dict(strategy.initial_status))


def ensure_namespace(meta: Object, expected: str) -> None:
    """Set the namespace of the request on an object's metadata, in place.

    Args:
        expected: the namespace of the request; "" for cluster-scoped kinds, whose objects lose their namespace.

    Raises:
        StatusError: 400, the object names another namespace.
    """
    namespace = meta.get("namespace") or ""
    if namespace == expected:
        if not namespace:
            meta.pop("namespace", None)
    elif not namespace:
        meta["namespace"] = expected
    elif not expected:
        del meta["namespace"]
    else:
        raise bad_request(_NAMESPACE_MISMATCH)
