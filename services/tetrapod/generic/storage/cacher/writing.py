"""`Writer`: writes of one resource, with optimistic concurrency.

A write is first based on the cache and retried on a conflict.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go, Create, GuaranteedUpdate, Delete
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.scheduling.offload import LARGE, in_thread
from tetrapod.generic.storage.backend import Backend, KeyValue, LeaseNotFound, StaleKeyValue, WriteResult
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.write_queue import WriteQueue
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.copied import copied
from tetrapod.generic.storage.encoding import encode, splice
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyExists, KeyNotFound
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.generic.storage.unreadable import Readable, Unreadable
from tetrapod.generic.storage.writes import Preconditions, TryUpdate, Updated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import dumps, loads


class BaseState(NamedTuple):
    """The state of an object on which a write is based.

    - `entry` is the object; None if it is absent.
    - `is_current` is True if the state was read from the store, and False if it comes from the cache, which may be
      behind.
    - `is_stale` is True if the value must be rewritten even if nothing changes, because it is encrypted with an old
      key, is not JSON, or lacks defaults.
    """

    entry: StoredEntry | None
    is_current: bool
    is_stale: bool = False


class Writer:
    """The part of a `Cacher` that writes the objects of one resource to the store.

    Args:
        backend: the store.
        prefix: the prefix of the resource's keys.
        cache: the watch cache, whose state a write is first based on.
        config: the type of the stored objects.
        leases: provides the leases of objects with a TTL.
    """

    def __init__(
        self, backend: Backend, prefix: str, cache: Cache, config: StorageConfig, leases: LeaseManager
    ) -> None:
        self._backend = backend
        self._prefix = prefix
        self._cache = cache
        self._config = config
        self._leases = leases
        self._queue: WriteQueue[StoredEntry] = WriteQueue()

    async def create(self, key: str, obj: Object, ttl: int, *, large: bool = False) -> Entry:
        """Store a new object and return its entry. `obj` is not modified.

        Args:
            key: the key, relative to the resource's prefix.
            obj: the object.
            ttl: seconds after which the store deletes the object; 0 means never.
            large: whether to encode the object in a thread, because encoding it would block the event loop.

        Raises:
            KeyExists: the key exists.
        """
        span = current_span()
        span.event("About to Encode")
        value = await in_thread(self._encode, obj, dumps) if large else self._encode(obj)
        span.event("Encode succeeded")
        while True:
            lease = await self._leases.lease(ttl) if ttl else 0
            try:
                result = await self._put(key, value, 0, lease)
            except LeaseNotFound:
                self._leases.forget()
                continue
            span.event("Txn call succeeded")
            if not result.succeeded:
                raise KeyExists(key)
            entry = self._stored_entry(key, splice(value, result.revision), result.revision, lease)
            span.event("Decode succeeded")
            return entry

    async def guaranteed_update(
        self, key: str, try_update: TryUpdate, preconditions: Preconditions, allow_absent: bool
    ) -> Entry:
        """Apply `try_update` to the stored object and write the result, retrying on conflicts. Return the stored entry.

        Args:
            key: the key, relative to the resource's prefix.
            try_update: called with a copy of the stored object and its entry; both are None if the object is absent. It
                returns the new object, or None to leave the stored one unchanged.
            preconditions: checked against each state before `try_update` is called.
            allow_absent: whether to call `try_update` if the key does not exist, in order to create it.

        Raises:
            KeyNotFound: the key does not exist, and `allow_absent` is not set or `try_update` returned None.
            PreconditionFailed: a precondition does not hold.
            Exception: an exception of `try_update` for the current state.
        """
        state = await self._base_state(key)
        current_span().event("initial value restored")
        while True:
            if self._queue.is_writing(key):
                state = await self._wait_for_write(key, state)
            if state.entry is None and not allow_absent:
                if state.is_current:
                    raise KeyNotFound(key)
                state = await self._read(key)
                continue
            try:
                preconditions.check(state.entry)
                updated = await try_update(await copied(state.entry) if state.entry is not None else None, state.entry)
            except Exception:
                current = await self._state_after_rejection(key, state)
                if current is None:
                    raise
                state = current
                continue
            attempt = await self._attempt(key, state, updated)
            if isinstance(attempt, StoredEntry):
                return attempt
            state = attempt

    async def _attempt(self, key: str, state: BaseState, updated: Updated | None) -> StoredEntry | BaseState:
        """Write `updated` if it differs from `state`, and return the stored entry.

        Return a `BaseState` instead, with the object that is stored now, if the caller must try again from it.

        Args:
            updated: the new object; None leaves the object unchanged.

        Raises:
            KeyNotFound: `updated` is None and the key does not exist.
        """
        if updated is None:
            return await self._unchanged(key, state)
        obj, span = updated.object, current_span()
        span.event("About to Encode")
        value = await in_thread(self._encode, obj, dumps) if updated.large else self._encode(obj)
        span.event("Encode succeeded")
        if state.entry is not None and not state.is_stale and await self._is_unchanged(state.entry, value):
            return await self._unchanged(key, state, rewrite=True)
        lease = await self._lease(state.entry, updated.ttl)
        owns_write = self._queue.begin(key)
        stored: StoredEntry | None = None
        try:
            span.event("Transaction prepared")
            result = await self._put(key, value, _revision(state.entry), lease, deleting=_is_being_deleted(obj))
            span.event("Txn call completed")
            span.event("Transaction committed")
            if result.succeeded:
                stored = self._stored_entry(key, splice(value, result.revision), result.revision, lease)
                span.event("Decode succeeded")
                return stored
            current = await self._current_state(key, result.current)
            span.event("Retry value restored")
            stored = current.entry
            return current
        except LeaseNotFound:
            self._leases.forget()
            return await self._read(key)
        finally:
            if owns_write:
                self._queue.end(key, stored)

    async def _wait_for_write(self, key: str, state: BaseState) -> BaseState:
        """Wait for an update of this key that is in progress, and return its result as the state to continue from.

        Only requests to the store are waited for, not admission, because a webhook may itself update this object. If
        the write in progress fails, the wait ends too. Conflicts are still detected by the comparison of revisions.

        Args:
            state: the state known to the caller, which is returned if neither that write nor the cache has a later
                one.
        """
        while self._queue.is_writing(key):
            stored = await self._queue.wait(key)
            if stored is None:
                break
            state = BaseState(stored, False)
        cached = self._cache.entries.get(key)
        if cached is not None and (state.entry is None or cached.revision > state.entry.revision):
            return BaseState(cached, False)
        return state

    async def _unchanged(self, key: str, state: BaseState, *, rewrite: bool = False) -> StoredEntry | BaseState:
        """Return the entry of `state` without writing, if it is what the store has.

        Otherwise return the current state, for another attempt.

        Args:
            rewrite: also return the current state if its value is stale, so that the next attempt rewrites it.

        Raises:
            KeyNotFound: the object does not exist.
        """
        if not state.is_current:
            current = await self._read(key)
            if _revision(current.entry) != _revision(state.entry) or (rewrite and current.is_stale):
                return current
        if state.entry is None:
            raise KeyNotFound(key)
        return state.entry

    async def delete(
        self, key: str, preconditions: Preconditions, validate: Callable[[Entry], Awaitable[None]] | None
    ) -> Entry:
        """Delete an object and return its last state with the resource version of its deletion.

        Args:
            key: the key, relative to the resource's prefix.
            preconditions: the uid and resource version that the object must have.
            validate: called with the object before the deletion, again if it changes; it may raise to reject the
                deletion. None for no check.

        Raises:
            KeyNotFound: the key does not exist.
            PreconditionFailed: a precondition does not hold.
        """
        state = await self._base_state(key)
        while True:
            entry = state.entry
            if entry is None:
                if state.is_current:
                    raise KeyNotFound(key)
                state = await self._read(key)
                continue
            try:
                preconditions.check(entry)
                if validate is not None:
                    await validate(entry)
            except Exception:
                current = await self._state_after_rejection(key, state)
                if current is None:
                    raise
                state = current
                continue
            result = await self._backend.delete_if(self._prefix + key, entry.revision)
            if result.succeeded:
                return entry.as_deleted(result.revision)
            state = await self._current_state(key, result.current)

    async def delete_unreadable(
        self, key: str, readable: Callable[[Entry], Awaitable[bool]] | None, *, dry_run: bool
    ) -> None:
        """Delete an object that cannot be read.

        Args:
            key: the key, relative to the resource's prefix.
            readable: returns whether an object that was decoded can be read by requests; None if it always can.
            dry_run: whether only to check that the object would be deleted.

        Raises:
            KeyNotFound: the key does not exist.
            Readable: the object can be read.
        """
        stored_key = self._prefix + key
        while True:
            page = await self._backend.range(stored_key, stored_key + "\0", counted=False)
            if not page.kvs:
                raise KeyNotFound(key)
            kv = page.kvs[0]
            with contextlib.suppress(Unreadable):
                entry = self._cache.reader.read(key, kv)
                if readable is None or await readable(entry):
                    raise Readable(key)
            if dry_run:
                return
            with contextlib.suppress(Unreadable):  # it was written again, and still cannot be read
                if (await self._backend.delete_if(stored_key, kv.mod_revision)).succeeded:
                    return

    # Current state

    async def _base_state(self, key: str) -> BaseState:
        """Return the state of a key from the cache if the cache has the key, else from the store.

        Raises:
            Unavailable: the store does not answer.
            Unreadable: the stored value cannot be read.
        """
        entry = self._cache.entries.get(key)
        return BaseState(entry, False) if entry is not None else await self._read(key)

    async def _state_after_rejection(self, key: str, rejected: BaseState) -> BaseState | None:
        """Return the state from which to try a write again that was rejected, or None if the rejection is final.

        A precondition, `try_update` or `validate` has rejected the write. If it judged a state from the cache, the
        object is read from the store. The result is that object, or None if it is the same revision. If it judged the
        stored object, the result is None.

        Args:
            key: the key, relative to the resource's prefix.
            rejected: the state that was judged.
        """
        if rejected.is_current:
            return None
        current = await self._read(key)
        return None if _revision(current.entry) == _revision(rejected.entry) else current

    async def _read(self, key: str) -> BaseState:
        return await self._current_state(key, await self._backend.get(self._prefix + key))

    async def _current_state(self, key: str, kv: KeyValue | None) -> BaseState:
        if kv is None:
            return BaseState(None, True)
        stale = isinstance(kv, StaleKeyValue) or not kv.value.startswith(b"{")
        cached = self._cache.entries.get(key)
        reader = self._cache.reader
        if cached is not None and cached.revision == kv.mod_revision:
            entry = cached
        else:
            entry = await reader.load(key, kv)
        return BaseState(entry, True, stale or (reader.completes and entry.raw != splice(kv.value, kv.mod_revision)))

    async def _put(self, key: str, value: bytes, expected: int, lease: int, *, deleting: bool = False) -> WriteResult:
        """Write a value to the store if the key has the revision `expected` (0: if it is absent).

        `deleting` is passed to `Backend.put_if`.

        Raises:
            LeaseNotFound: the lease does not exist.
        """
        reader, revision = self._cache.reader, 0
        reader.begin_write(key, value)
        try:
            result = await self._backend.put_if(self._prefix + key, value, expected, lease=lease, deleting=deleting)
            if result.succeeded and self._cache.filled:
                revision = result.revision
            return result
        finally:
            reader.end_write(key, value, revision, self._cache.revision)

    # Encoding

    def _encode(self, obj: Object, dumps: Callable[[Any], bytes] = orjson.dumps) -> bytes:
        return encode(obj, self._config.api_version, self._config.kind, dumps)

    @staticmethod
    async def _is_unchanged(entry: StoredEntry, value: bytes) -> bool:
        """Return whether writing `value` would leave the stored object unchanged; the order of keys is irrelevant.

        Equal objects have encodings of equal length, so most differences are seen without parsing.
        """
        raw = splice(value, entry.revision)
        if len(raw) != len(entry.raw):
            return False
        if raw == entry.raw:
            return True
        if len(raw) < LARGE:
            return bool(loads(raw) == entry.peek())
        return await in_thread(lambda: loads(raw) == entry.object())

    async def _lease(self, entry: StoredEntry | None, ttl: int | None) -> int:
        if ttl is None:
            return entry.lease if entry is not None else 0
        return await self._leases.lease(ttl) if ttl else 0

    def _stored_entry(self, key: str, raw: bytes, revision: int, lease: int) -> StoredEntry:
        """Return the entry of a finished write.

        If the watch event has arrived already, this is the cache's entry, so that memory holds one copy instead of two.

        Args:
            key: the key, relative to the resource's prefix.
            raw: the JSON of the written object with its resource version.
            revision: the revision of the write.
            lease: the ID of the object's lease; 0 if it does not expire.
        """
        cached = self._cache.entries.get(key)
        return (
            cached
            if cached is not None and cached.revision == revision
            else StoredEntry.from_served(key, raw, revision, lease)
        )


def _revision(entry: StoredEntry | None) -> int:
    return entry.revision if entry is not None else 0


def _is_being_deleted(obj: Object) -> bool:
    return (obj.get("metadata") or {}).get("deletionTimestamp") is not None
