"""`CachingStorageFactory`: creates one Cacher per resource, over one backend or those of single resources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.storage import sizes
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.cacher import Cacher
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.generic.storage.media_types import CBOR, ENCODINGS, JSON
from tetrapod.generic.storage.presence import Presence
from tetrapod.generic.storage.transforming import ConvertedBackend
from tetrapod.machinery.gvk import GroupResource

if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption

_STORED_WITH: Final = {GroupResource("", "servicenodeportallocations"): GroupResource("", "services")}
"""Resources that are in the store of another one. Upstream: pkg/registry/core/rest/storage_core.go"""


class CachingStorageFactory:
    """The implementation of `StorageFactory`.

    For a prefix that was requested before, it returns the same Cacher, even if the rest of the configuration differs.
    Only defaults are added to it.

    Args:
        backend: the store of all resources without another one.
        path_prefix: the prefix of all keys (--etcd-prefix).
        encryption: encryption at rest; None stores plain values.
        scheduling: the limit of events that a watch cache applies in one step of the event loop.
        cached: returns whether reads of a resource are answered by its watch cache; None for all resources.
        overrides: the stores of built-in resources that are not kept in `backend`, by resource. A store with the
            resource name `*` has those resources of the group that are not named individually.
        media_type: the media type in which built-in resources are stored. CustomResourceDefinitions and APIServices are
            always stored as JSON, and custom resources as `StorageConfig` says.
    """

    def __init__(
        self,
        backend: Backend,
        path_prefix: str = "/registry",
        encryption: Encryption | None = None,
        scheduling: FairScheduling = DEFAULT,
        cached: Callable[[GroupResource], bool] | None = None,
        overrides: Mapping[GroupResource, Backend] | None = None,
        media_type: str = JSON,
    ) -> None:
        self.backend = backend
        self._overrides = overrides or {}
        self._cached = cached
        self._encryption = encryption
        self._scheduling = scheduling
        self._media_type = media_type
        sizes.register([backend, *self._overrides.values()])
        self._root = path_prefix.rstrip("/")
        self._leases = {store: LeaseManager(store) for store in (backend, *self._overrides.values())}
        self._cachers: dict[str, Cacher] = {}

    def resource(self, config: StorageConfig) -> Cacher:
        """Return the Cacher of a resource, creating it at the first call for its prefix. Creating it does no I/O."""
        cacher = self._cachers.get(config.prefix)
        if cacher is None:
            store = self._store(config)
            backend: Backend = (
                store if self._encryption is None else self._encryption.backend(store, config.group_resource)
            )
            if config.from_store is not None:
                backend = ConvertedBackend(backend, config.from_store, config.to_store)
            if (encoding := ENCODINGS[self._encoding_of(config)]) is not None:
                from tetrapod.generic.storage.encoded_backend import EncodedBackend

                backend = EncodedBackend(backend, encoding)
            cacher = self._cachers[config.prefix] = Cacher(
                backend,
                config,
                root=self._root,
                leases=self._leases[store],
                scheduling=self._scheduling,
                cached_reads=self._cached is None or self._cached(config.group_resource),
                reloads=None if self._encryption is None else partial(self._encryption.reloads, config.group_resource),
            )
        elif config.defaults is not None:
            cacher.set_defaults(config.defaults)
        return cacher

    def _store(self, config: StorageConfig) -> Backend:
        """Return the store of a resource.

        As upstream, custom resources, CustomResourceDefinitions and APIServices are always in the default store.
        """
        resource = _STORED_WITH.get(config.group_resource, config.group_resource)
        if not self._overrides or config.is_extension:
            return self.backend
        of_group = self._overrides.get(GroupResource(resource.group, "*"), self.backend)
        return self._overrides.get(resource, of_group)

    def _encoding_of(self, config: StorageConfig) -> str:
        """Return the media type in which a resource is stored."""
        if config.cbor:
            return CBOR
        return JSON if config.is_extension else self._media_type

    def presence(self) -> Presence:
        """Return a new `Presence`, which finds out which custom resources have objects. The caller closes it."""
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
