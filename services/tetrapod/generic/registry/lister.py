"""`Lister`: read-only access to the objects of another resource, from this process's watch cache.

Admission plugins, authenticators and authorizers use it, because every request needs objects that other services store
(namespaces, secrets, service accounts). Returned objects are shared and must not be modified.
Upstream: client-go listers
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.interface import ResourceStorage, StorageFactory
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import Selector

_CACHED = "0"


class Lister:
    """A lister of one resource. `get` and `list` read from the cache, which may lag slightly; `get_live` is consistent.

    All methods raise storage's errors (`Unavailable`). The returned objects are shared and must not be modified.

    Args:
        storages: provides the storage of the resource.
        config: the key prefix and the kind of the resource's objects in the store.
    """

    def __init__(self, storages: StorageFactory, config: StorageConfig) -> None:
        self.storage: ResourceStorage = storages.resource(config)
        self._namespaced = config.namespaced

    async def get(self, namespace: str, name: str) -> Object | None:
        """Return an object from the cache, or None if the cache does not have it.

        `namespace` is "" for cluster-scoped kinds.
        """
        key, cached = self._key(namespace, name), self.storage.cached()
        return _peek(cached.get(key) if cached is not None else await self.storage.get(key, _CACHED))

    async def get_live(self, namespace: str, name: str) -> Object | None:
        """Return an object by a consistent read, or None if it does not exist."""
        return _peek(await self.storage.get(self._key(namespace, name)))

    async def find(self, namespace: str, name: str) -> Object | None:
        """Return an object from the cache, or by a consistent read if the cache does not have it.

        The consistent read covers objects that have just been created. The result is None if the object does not exist.
        """
        return await self.get(namespace, name) or await self.get_live(namespace, name)

    async def list(self, namespace: str = "", selector: Selector | None = None) -> list[Object]:
        """Return the cached objects of a namespace ("": all) that match the selector (None: all), in key order."""
        if selector is None or selector.empty:
            return [entry.peek() for entry in await self.entries(namespace)]
        query = ListQuery(self._prefix(namespace), Predicate(labels=selector.matcher), resource_version=_CACHED)
        return [entry.peek() for entry in (await self.storage.list(query)).entries]

    async def entries(self, namespace: str = "") -> Sequence[Entry]:
        """Return the cached entries of a namespace ("": all), in key order. The sequence must not be modified."""
        prefix, cached = self._prefix(namespace), self.storage.cached()
        if cached is not None:
            return cached.within(prefix)
        return (await self.storage.list(ListQuery(prefix, resource_version=_CACHED))).entries

    def _prefix(self, namespace: str) -> str:
        return f"{namespace}/" if namespace and self._namespaced else ""

    def _key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self._namespaced else name


def _peek(entry: Entry | None) -> Object | None:
    return entry.peek() if entry is not None else None
