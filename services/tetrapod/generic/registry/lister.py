"""`Lister`: read-only looks at objects of another resource, from this process's cache.

For admission plugins, authenticators and authorizers, which need what other services store (namespaces, secrets, service
accounts) on every request. What it hands out is shared and must not be changed. Upstream: client-go listers.
"""

from __future__ import annotations

from tetrapod.generic.storage.interface import Entry, ListQuery, Predicate, ResourceStorage, StorageConfig, StorageFactory
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import Selector

_CACHED = "0"


class Lister:
    """`get` and `list` answer at once from the cache, which may lag a moment; `get_live` never answers with less than was written.

    All raise storage's errors (`Unavailable`).
    """

    def __init__(self, storages: StorageFactory, config: StorageConfig) -> None:
        self.storage: ResourceStorage = storages.resource(config)
        self._namespaced = config.namespaced

    async def get(self, namespace: str, name: str) -> Object | None:
        """`namespace` is "" for kinds without."""
        return _peek(await self.storage.get(self._key(namespace, name), _CACHED))

    async def get_live(self, namespace: str, name: str) -> Object | None:
        return _peek(await self.storage.get(self._key(namespace, name)))

    async def find(self, namespace: str, name: str) -> Object | None:
        """From the cache, or, since what was made a moment ago elsewhere may not be there yet, live."""
        return await self.get(namespace, name) or await self.get_live(namespace, name)

    async def list(self, namespace: str = "", selector: Selector | None = None) -> list[Object]:
        predicate = Predicate(labels=selector.matches if selector is not None and not selector.empty else None)
        prefix = f"{namespace}/" if namespace and self._namespaced else ""
        page = await self.storage.list(ListQuery(prefix, predicate, resource_version=_CACHED))
        return [entry.peek() for entry in page.entries]

    def _key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self._namespaced else name


def _peek(entry: Entry | None) -> Object | None:
    return entry.peek() if entry is not None else None
