"""`Lister`: read-only access to the objects of another resource, from this process's watch cache.

Admission plugins, authenticators and authorizers use it, because every request needs objects that other services store
(namespaces, secrets, service accounts). Returned objects are shared and must not be modified.
Upstream: client-go listers
"""

from __future__ import annotations

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
        return _peek(await self.storage.get(self._key(namespace, name), _CACHED))

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
        predicate = Predicate(labels=selector.matcher if selector is not None and not selector.empty else None)
        prefix = f"{namespace}/" if namespace and self._namespaced else ""
        page = await self.storage.list(ListQuery(prefix, predicate, resource_version=_CACHED))
        return [entry.peek() for entry in page.entries]

    def _key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self._namespaced else name


def _peek(entry: Entry | None) -> Object | None:
    return entry.peek() if entry is not None else None
