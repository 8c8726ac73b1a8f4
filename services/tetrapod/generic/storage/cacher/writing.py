"""Writes: each is a comparison with the revision it was based on, tried from the cache first and again on a conflict.

Follows Create, GuaranteedUpdate and Delete of k8s.io/apiserver/pkg/storage/etcd3/store.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import orjson

from tetrapod.generic.storage.backend import Backend, KeyValue, LeaseNotFound, StaleKeyValue
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.encoding import encode, splice
from tetrapod.generic.storage.interface import (
    Entry,
    KeyExists,
    KeyNotFound,
    PreconditionFailed,
    Preconditions,
    StorageConfig,
    TryUpdate,
    Updated,
)
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.machinery.gvk import Object


class Known(NamedTuple):
    """What a write is based on. A `certain` one was read from the store itself; a `stale` one is written even if nothing changes."""

    entry: StoredEntry | None
    certain: bool
    stale: bool = False


def check(preconditions: Preconditions, entry: StoredEntry | None) -> None:
    """Raises PreconditionFailed."""
    if preconditions.uid is not None:
        uid = entry.uid if entry is not None else ""
        if uid != preconditions.uid:
            raise PreconditionFailed(f"Precondition failed: UID in precondition: {preconditions.uid}, UID in object meta: {uid}")
    if preconditions.resource_version is not None:
        version = str(entry.revision) if entry is not None else ""
        if version != preconditions.resource_version:
            asked = preconditions.resource_version
            raise PreconditionFailed(
                f"Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in object meta: {version}"
            )


class Writer:
    def __init__(self, backend: Backend, prefix: str, cache: Cache, config: StorageConfig, leases: LeaseManager) -> None:
        self._backend = backend
        self._prefix = prefix
        self._cache = cache
        self._config = config
        self._leases = leases
        self._under_way: dict[str, asyncio.Future[StoredEntry | None]] = {}

    async def create(self, key: str, obj: Object, ttl: int) -> Entry:
        value = self._encode(obj)
        while True:
            lease = await self._leases.lease(ttl) if ttl else 0
            try:
                result = await self._backend.put_if(self._prefix + key, value, 0, lease=lease)
            except LeaseNotFound:
                self._leases.forget()
                continue
            if not result.succeeded:
                raise KeyExists(key)
            return self._written(key, splice(value, result.revision), result.revision, lease)

    async def guaranteed_update(self, key: str, try_update: TryUpdate, preconditions: Preconditions, allow_absent: bool) -> Entry:
        known = await self._known(key)
        while True:
            if key in self._under_way:
                known = await self._after_others(key, known)
            if known.entry is None and not allow_absent:
                if known.certain:
                    raise KeyNotFound(key)
                known = await self._read(key)
                continue
            try:
                check(preconditions, known.entry)
                updated = await try_update(known.entry.object() if known.entry is not None else None, known.entry)
            except Exception as refusal:
                known = await self._reconsidered(key, known, refusal)
                continue
            attempt = await self._attempt(key, known, updated)
            if isinstance(attempt, StoredEntry):
                return attempt
            known = attempt

    async def _attempt(self, key: str, known: Known, updated: Updated | None) -> StoredEntry | Known:
        """Write `updated`. Where somebody else was faster: what is stored now."""
        value = self._encode(updated.object) if updated is not None else None
        if updated is None or value is None:
            return await self._left_alone(key, known)
        if known.entry is not None and not known.stale and self._same(known.entry, value):
            return await self._left_alone(key, known, rewrite=True)
        lease = await self._lease(known.entry, updated.ttl)
        first = key not in self._under_way
        if first:
            self._under_way[key] = asyncio.get_running_loop().create_future()
        stored: StoredEntry | None = None
        try:
            result = await self._backend.put_if(self._prefix + key, value, _revision(known.entry), lease=lease)
            if result.succeeded:
                stored = self._written(key, splice(value, result.revision), result.revision, lease)
                return stored
            present = self._certain(key, result.current)
            stored = present.entry
            return present
        except LeaseNotFound:
            self._leases.forget()
            return await self._read(key)
        finally:
            if first:
                self._under_way.pop(key).set_result(stored)

    async def _after_others(self, key: str, known: Known) -> Known:
        """Wait for the update of this key that is under way, and go on from its result.

        Of many that change one object at once, all but one would otherwise find that another was faster, and begin anew. Only for
        the store is anybody waited for, never for a decision: admission may ask a webhook, and that may write here. And only while
        the store answers. The comparison of revisions remains what makes a write right.
        """
        while (writing := self._under_way.get(key)) is not None:
            stored = await asyncio.shield(writing)
            if stored is None:
                break
            known = Known(stored, False)
        cached = self._cache.entries.get(key)
        if cached is not None and (known.entry is None or cached.revision > known.entry.revision):
            return Known(cached, False)
        return known

    async def _left_alone(self, key: str, known: Known, *, rewrite: bool = False) -> StoredEntry | Known:
        """Nothing is to be changed: right, if it was the present state that was looked at, and none that is to be written anew."""
        if not known.certain:
            present = await self._read(key)
            if _revision(present.entry) != _revision(known.entry) or (rewrite and present.stale):
                return present
        if known.entry is None:
            raise KeyNotFound(key)
        return known.entry

    async def delete(self, key: str, preconditions: Preconditions, validate: Callable[[Entry], Awaitable[None]] | None) -> Entry:
        known = await self._known(key)
        while True:
            entry = known.entry
            if entry is None:
                if known.certain:
                    raise KeyNotFound(key)
                known = await self._read(key)
                continue
            try:
                check(preconditions, entry)
                if validate is not None:
                    await validate(entry)
            except Exception as refusal:
                known = await self._reconsidered(key, known, refusal)
                continue
            result = await self._backend.delete_if(self._prefix + key, entry.revision)
            if result.succeeded:
                return entry.as_deleted(result.revision)
            known = self._certain(key, result.current)

    # What is stored

    async def _known(self, key: str) -> Known:
        """From the cache, if it has the key; else from the store."""
        entry = self._cache.entries.get(key)
        return Known(entry, False) if entry is not None else await self._read(key)

    async def _reconsidered(self, key: str, refused: Known, refusal: Exception) -> Known:
        """A refusal counts only if it was of the present state: raise it again, or give what to try instead."""
        if refused.certain:
            raise refusal
        present = await self._read(key)
        if _revision(present.entry) == _revision(refused.entry):
            raise refusal
        return present

    async def _read(self, key: str) -> Known:
        return self._certain(key, await self._backend.get(self._prefix + key))

    def _certain(self, key: str, kv: KeyValue | None) -> Known:
        if kv is None:
            return Known(None, True)
        stale = isinstance(kv, StaleKeyValue)
        cached = self._cache.entries.get(key)
        if cached is not None and cached.revision == kv.mod_revision:
            return Known(cached, True, stale)
        return Known(StoredEntry.stored(key, kv.value, kv.mod_revision, kv.lease), True, stale)

    # What is written

    def _encode(self, obj: Object) -> bytes:
        return encode(obj, self._config.api_version, self._config.kind)

    @staticmethod
    def _same(entry: StoredEntry, value: bytes) -> bool:
        """Whether nothing would change. The order of keys is no change; equal objects are equally long."""
        raw = splice(value, entry.revision)
        return len(raw) == len(entry.raw) and (raw == entry.raw or orjson.loads(raw) == entry.peek())

    async def _lease(self, entry: StoredEntry | None, ttl: int | None) -> int:
        if ttl is None:
            return entry.lease if entry is not None else 0
        return await self._leases.lease(ttl) if ttl else 0

    def _written(self, key: str, raw: bytes, revision: int, lease: int) -> StoredEntry:
        """The cache's own entry if the event has come already, so that one is kept and not two."""
        cached = self._cache.entries.get(key)
        return cached if cached is not None and cached.revision == revision else StoredEntry.of(key, raw, revision, lease)


def _revision(entry: StoredEntry | None) -> int:
    return entry.revision if entry is not None else 0
