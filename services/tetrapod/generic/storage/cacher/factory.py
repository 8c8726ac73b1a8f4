"""`CachingStorageFactory`: one Cacher per resource over one backend."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tetrapod.generic.storage import sizes
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.cacher import Cacher
from tetrapod.generic.storage.interface import StorageConfig
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.generic.storage.presence import Presence

if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption


class CachingStorageFactory:
    """Implements `StorageFactory`. Asked twice for one prefix it gives the same Cacher, with the configuration of the first."""

    def __init__(self, backend: Backend, path_prefix: str = "/registry", encryption: Encryption | None = None) -> None:
        self.backend = backend
        self._encryption = encryption
        sizes.known(backend)
        self._root = path_prefix.rstrip("/")
        self._leases = LeaseManager(backend)
        self._cachers: dict[str, Cacher] = {}

    def resource(self, config: StorageConfig) -> Cacher:
        cacher = self._cachers.get(config.prefix)
        if cacher is None:
            backend = self.backend if self._encryption is None else self._encryption.backend(self.backend, config.group_resource)
            cacher = self._cachers[config.prefix] = Cacher(backend, config, root=self._root, leases=self._leases)
        return cacher

    def presence(self) -> Presence:
        return Presence(self.backend, self._root)

    async def drop(self, prefix: str) -> None:
        """A resource is no longer served (its CRD was deleted): end its watches, forget its cache."""
        cacher = self._cachers.pop(prefix, None)
        if cacher is not None:
            await cacher.close()

    async def close(self) -> None:
        """Ends every watch and task; the backend stays open for whoever opened it."""
        await asyncio.gather(*(cacher.close() for cacher in self._cachers.values()))
        self._cachers.clear()
