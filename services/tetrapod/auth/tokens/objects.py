"""Reads of other services' objects that a token names: from the cache, and from the store where the cache is behind.

Follows pkg/controller/serviceaccount/tokengetter.go: an informer first, a live look-up when it does not know.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.interface import StorageConfig, StorageFactory
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import not_found

SECRETS: Final = StorageConfig(prefix="secrets", api_version="v1", kind="Secret")
SERVICE_ACCOUNTS: Final = StorageConfig(prefix="serviceaccounts", api_version="v1", kind="ServiceAccount")
PODS: Final = StorageConfig(prefix="pods", api_version="v1", kind="Pod")
NODES: Final = StorageConfig(prefix="minions", api_version="v1", kind="Node", namespaced=False)


class Objects:
    """Whatever is handed out is shared: nobody changes it."""

    def __init__(self, storage: StorageFactory) -> None:
        self._storage = storage

    async def find(self, config: StorageConfig, namespace: str, name: str, uid: str = "") -> Object | None:
        """The object, if it is there; with `uid`, what the cache knows counts only if it is that very one."""
        storage = self._storage.resource(config)
        key = f"{namespace}/{name}" if config.namespaced else name
        entry = await storage.get(key, "0")
        if entry is None or (uid and entry.peek()["metadata"].get("uid") != uid):
            entry = await storage.get(key)
        return entry.peek() if entry is not None else None

    async def get(self, config: StorageConfig, namespace: str, name: str) -> Object:
        """
        Raises:
            StatusError: 404.
        """
        found = await self.find(config, namespace, name)
        if found is None:
            raise not_found(GroupResource("", "nodes" if config is NODES else config.prefix), name)
        return found
