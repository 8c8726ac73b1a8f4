"""Dry-run variants of storage writes: they make every check and return the result, but store nothing.

A dry-run update returns the stored resourceVersion; a dry-run create has none.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go
"""

from __future__ import annotations

from tetrapod.generic.registry.entry import unstored
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.storage.copied import copied, peeked
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyNotFound
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.writes import Preconditions, TryUpdate


async def guaranteed_update(
    storage: ResourceStorage, key: str, try_update: TryUpdate, preconditions: Preconditions, allow_absent: bool
) -> Entry:
    """Return the entry that an update would store. Nothing is written.

    Args:
        storage: the storage of the resource.
        key: the key of the object.
        try_update: called with a copy of the stored object and its entry; both are None if the object is absent. It
            returns the new object, or None to leave the stored one unchanged.
        preconditions: the uid and resource version that the object must have.
        allow_absent: whether to call `try_update` if the key does not exist.

    Raises:
        KeyNotFound: the key does not exist, and `allow_absent` is not set.
        PreconditionFailed: a precondition does not hold.
    """
    entry = await storage.get(key)
    if entry is None and not allow_absent:
        raise KeyNotFound(key)
    preconditions.check(entry)
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
    preconditions.check(entry)
    if validate is not None:
        await validate(await peeked(entry))
    return entry
