"""`Objects`: reads of the objects that a token names (ServiceAccounts, Secrets, Pods, Nodes), which core serves.

They use the watch cache, and storage where the cache may be stale.

Upstream: pkg/controller/serviceaccount/tokengetter.go, which asks an informer first and the API if the informer does
not have the object.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import not_found

SECRETS: Final = StorageConfig(prefix="secrets", api_version="v1", kind="Secret")
SERVICE_ACCOUNTS: Final = StorageConfig(prefix="serviceaccounts", api_version="v1", kind="ServiceAccount")
PODS: Final = StorageConfig(prefix="pods", api_version="v1", kind="Pod")
NODES: Final = StorageConfig(prefix="minions", api_version="v1", kind="Node", namespaced=False)


class Objects:
    """A reader of the stored objects that tokens name, such as service accounts, Secrets and pods.

    Returned objects are shared with the cache and must not be modified.
    """

    def __init__(self, storage: StorageFactory) -> None:
        self._storage = storage

    async def find(self, config: StorageConfig, namespace: str, name: str, uid: str = "") -> Object | None:
        """Return the object, or None if it does not exist.

        It is read from the cache, and from storage if the cache does not have it.

        Args:
            config: the storage configuration of the object's resource.
            namespace: the namespace; ignored for cluster-scoped kinds.
            name: the name.
            uid: if not "", a cached object with another uid counts as stale, and storage is read.

        Raises:
            Unavailable: the storage does not answer.
        """
        storage = self._storage.resource(config)
        key = f"{namespace}/{name}" if config.namespaced else name
        entry = await storage.get(key, "0")
        if entry is None or (uid and entry.peek()["metadata"].get("uid") != uid):
            entry = await storage.get(key)
        return entry.peek() if entry is not None else None

    async def get(self, config: StorageConfig, namespace: str, name: str) -> Object:
        """Return the object, from the cache or, if the cache does not have it, from storage.

        Args:
            config: the storage configuration of the object's resource.
            namespace: the namespace; ignored for cluster-scoped kinds.
            name: the name.

        Raises:
            StatusError: 404, the object does not exist.
            Unavailable: the storage does not answer.
        """
        obj = await self.find(config, namespace, name)
        if obj is None:
            raise not_found(GroupResource("", "nodes" if config is NODES else config.prefix), name)
        return obj
