"""`CachingStorageFactory`: creates one Cacher per resource over one backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.storage import sizes
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.cacher import Cacher
from tetrapod.generic.storage.interface import StorageConfig
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupResource

if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption


class CachingStorageFactory:
    """The implementation of `StorageFactory` over one backend.

    For a prefix that was requested before, it returns the same Cacher, even if the rest of the configuration differs.

    Args:
        path_prefix: the prefix of all keys (--etcd-prefix).
        encryption: encryption at rest; None stores plain values.
        scheduling: the limit of events that a watch cache applies in one step of the event loop.
        cached: returns whether reads of a resource are answered by its watch cache; None for all resources.
    """

    def __init__(
        self,
        backend: Backend,
        path_prefix: str = "/registry",
        encryption: Encryption | None = None,
        scheduling: FairScheduling = DEFAULT,
        cached: Callable[[GroupResource], bool] | None = None,
    ) -> None:
        self.backend = backend
        self._cached = cached
        self._encryption = encryption
        self._scheduling = scheduling
        sizes.register(backend)
        self._root = path_prefix.rstrip("/")
        self._leases = LeaseManager(backend)
        self._cachers: dict[str, Cacher] = {}

    def resource(self, config: StorageConfig) -> Cacher:
        """Return the Cacher of a resource, creating it at the first call for its prefix. Creating it does no I/O."""
        cacher = self._cachers.get(config.prefix)
        if cacher is None:
            backend = (
                self.backend
                if self._encryption is None
                else self._encryption.backend(self.backend, config.group_resource)
            )
            cacher = self._cachers[config.prefix] = Cacher(
                backend,
                config,
                root=self._root,
                leases=self._leases,
                scheduling=self._scheduling,
                cached_reads=self._cached is None or self._cached(config.group_resource),
            )
        return cacher

    def presence(self) -> Presence:
        """Return a new observer of which resources have objects. The caller closes it."""
        return Presence(self.backend, self._root)

    async def drop(self, prefix: str) -> None:
        """End the watches and drop the cache of a resource that is no longer served (its CRD was deleted).

        Do nothing if the resource has not been used.
        """
        cacher = self._cachers.pop(prefix, None)
        if cacher is not None:
            await cacher.close()

    async def close(self) -> None:
        """End every watch and task. The backend stays open; its owner closes it."""
        await asyncio.gather(*(cacher.close() for cacher in self._cachers.values()))
        self._cachers.clear()
