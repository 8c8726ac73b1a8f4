"""Dry-run variants of storage writes: they make every check and return the result, but store nothing.

A dry-run update returns the stored resourceVersion; a dry-run create has none.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go
"""

from __future__ import annotations

from tetrapod.generic.registry.entry import unstored
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.storage.copied import copied, peeked
from tetrapod.generic.storage.interface import (
    Entry,
    KeyNotFound,
    PreconditionFailed,
    Preconditions,
    ResourceStorage,
    TryUpdate,
)


def check_preconditions(preconditions: Preconditions, entry: Entry | None) -> None:
    """Check that a stored entry has the required uid and resourceVersion; None is an absent object.

    Raises:
        PreconditionFailed: with upstream's text.
    """
    if preconditions.empty:
        return
    meta = entry.peek()["metadata"] if entry is not None else {}
    uid = meta.get("uid") or ""
    if preconditions.uid is not None and preconditions.uid != uid:
        raise PreconditionFailed(
            f"Precondition failed: UID in precondition: {preconditions.uid}, UID in object meta: {uid}"
        )
    version = str(entry.revision) if entry is not None else ""
    if preconditions.resource_version is not None and preconditions.resource_version != version:
        expected = preconditions.resource_version
        raise PreconditionFailed(
            f"Precondition failed: ResourceVersion in precondition: {expected}, ResourceVersion in object meta: "
            f"{version}"
        )


async def guaranteed_update(
    storage: ResourceStorage, key: str, try_update: TryUpdate, preconditions: Preconditions, allow_absent: bool
) -> Entry:
    """Return the entry that an update would store. See `ResourceStorage.guaranteed_update` for the arguments.

    Raises:
        KeyNotFound: the key does not exist, and `allow_absent` is not set.
        PreconditionFailed: a precondition does not hold.
    """
    entry = await storage.get(key)
    if entry is None and not allow_absent:
        raise KeyNotFound(key)
    check_preconditions(preconditions, entry)
    updated = await try_update(await copied(entry) if entry is not None else None, entry)
    if updated is not None:
        revision = entry.revision if entry is not None else 0
        return await unstored(key, updated.object, revision, large=updated.large)
    assert entry is not None  # an absent object cannot be left unchanged
    return entry


async def delete(
    storage: ResourceStorage, key: str, preconditions: Preconditions, validate: ValidateObject | None
) -> Entry:
    """Return the entry that a deletion would remove.

    Args:
        validate: called with the object, which it must not change; it rejects by raising.

    Raises:
        KeyNotFound: the key does not exist.
        PreconditionFailed: a precondition does not hold.
    """
    entry = await storage.get(key)
    if entry is None:
        raise KeyNotFound(key)
    check_preconditions(preconditions, entry)
    if validate is not None:
        await validate(await peeked(entry))
    return entry
