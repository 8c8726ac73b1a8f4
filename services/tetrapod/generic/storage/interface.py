"""The storage interface that the registry uses: cached, watchable objects of one resource, written under preconditions.

The `Cacher` (cacher/) implements `ResourceStorage` over a `Backend`. Keys are relative to the resource's prefix:
`ns/name`, or `name` for cluster-scoped resources.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/interfaces.go
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.presence import Presence
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, TryUpdate
from tetrapod.machinery.gvk import Object


class CachedEntries(Protocol):
    """The current entries of a watch cache, by key and in key order."""

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or None if it does not exist."""
        ...

    def within(self, prefix: str) -> Sequence[Entry]:
        """Return the entries whose keys begin with `prefix`, in key order. The sequence must not be modified."""
        ...


class ResourceStorage(Protocol):
    """The objects of one resource. `metadata.resourceVersion` is removed from objects before they are stored.

    Keys are relative to the resource's prefix: `ns/name`, or `name` for cluster-scoped resources. Every method raises
    `Unavailable` (generic/lifecycle) when the store does not answer.
    """

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        """Return the object's entry, or None if it does not exist.

        Args:
            resource_version: "" means most recent (consistent), "0" means any, else at least this version.

        Raises:
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version is malformed.
            Unreadable: the object cannot be decrypted or decoded.
        """
        ...

    async def list(self, query: ListQuery) -> ListPage:
        """Return one page of a list.

        Raises:
            TooOldResourceVersion: the version or continue token has been compacted.
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version or token is malformed.
            Unreadable: the store answers the list, and objects in it cannot be decrypted or decoded.
        """
        ...

    def cached(self) -> CachedEntries | None:
        """Return the entries of the watch cache, which a caller may read until it awaits something.

        Such reads are those of a client-go lister: they are neither counted in the metrics nor traced.

        Returns:
            None if the cache has not been filled, or does not hold the objects as `get` returns them.
        """
        ...

    async def watch(self, query: WatchQuery) -> Watch:
        """Open a watch, which the caller closes. A version that is too old is reported as an ERROR event.

        Raises:
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version is malformed.
        """
        ...

    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        """Store a new object and return its entry. `obj` is not modified.

        Args:
            ttl: seconds after which the store deletes the object; 0 means never.
            large: whether to encode the object in a thread, because encoding it would block the event loop.

        Raises:
            KeyExists: the key exists.
            RequestTooLarge: the object exceeds the size limit of the store.
            CannotEncrypt: the object cannot be encrypted.
        """
        ...

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        allow_absent: bool = False,
    ) -> Entry:
        """Read the object, call `try_update`, write the result, and return the stored entry.

        If another write came first, try again. Nothing is written if the result equals the stored object. Exceptions of
        `try_update` are passed on, if the state that it was called with is the current one.

        Args:
            try_update: called with a copy of the stored object, which it may change, and its entry; both are None if
                the object is absent. It returns the new object, or None to leave the stored one unchanged.
            preconditions: checked against each state before `try_update` is called.
            allow_absent: call `try_update` with None if the key does not exist, in order to create it.

        Raises:
            KeyNotFound: the key does not exist, and `allow_absent` is not set or `try_update` returned None.
            PreconditionFailed: a precondition does not hold.
        """
        ...

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        """Delete an object and return its last state with the resource version of the deletion.

        Args:
            validate: called with the object before the deletion, again if it changes; it may raise to reject the
                deletion.

        Raises:
            KeyNotFound: the key does not exist.
            PreconditionFailed: a precondition does not hold.
        """
        ...

    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        """Delete an object that cannot be read.

        Args:
            dry_run: only check that the object would be deleted.
            readable: returns whether an object that was decoded can be read by requests; None if it always can.

        Raises:
            KeyNotFound: the key does not exist.
            Readable: the object can be read.
        """
        ...

    async def count(self) -> int:
        """Return the number of objects of the resource in all namespaces."""
        ...

    def statistics(self) -> tuple[int, int] | None:
        """Return the number of objects and their average size in bytes, or None if the cache is not filled."""
        ...

    async def ready(self) -> None:
        """Wait until the cache has been filled, starting to fill it if necessary.

        Raises:
            NotReady: the store contains values that cannot be read, so the cache cannot be filled.
        """
        ...

    async def close(self) -> None:
        """End all watches and background tasks. The store itself stays open."""
        ...


class StorageFactory(Protocol):
    """Provides the storage of each resource.

    It returns the same storage for the same prefix, so a process has one cache of each.
    """

    def resource(self, config: StorageConfig) -> ResourceStorage:
        """Return the storage of a resource, creating it at the first call for its prefix."""
        ...

    def presence(self) -> Presence:
        """Return a new `Presence`, which finds out which custom resources have objects. The caller closes it."""
        ...

    async def drop(self, prefix: str) -> None:
        """End the watches and drop the cache of a resource that is no longer served.

        The stored objects are not deleted. Do nothing if the resource has not been used.
        """
        ...

    async def close(self) -> None:
        """Close the storage of every resource. The store itself stays open."""
        ...
