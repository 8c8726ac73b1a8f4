"""`StorageServiceResolver`: resolves the Services of webhooks to addresses by reading storage.

It is for processes that share the store with core and have no informers.
"""

from __future__ import annotations

from typing import Final, Protocol

from tetrapod.generic.proxy.resolver import SERVICE_NAME, cluster_ip, endpoint, endpoint_port, require_service
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import labels

SERVICES: Final = StorageConfig(prefix="services/specs", api_version="v1", kind="Service")
ENDPOINT_SLICES: Final = StorageConfig(prefix="endpointslices", api_version="discovery.k8s.io/v1", kind="EndpointSlice")


class ServiceResolver(Protocol):
    """A resolver of the Services that webhook configurations name."""

    async def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Return the host and port at which a port of a Service can be reached.

        Raises:
            Unresolvable: the Service does not exist or has no usable address.
        """
        ...


class StorageServiceResolver:
    """A resolver that reads storage. Nothing is watched before the first call of a webhook behind a Service.

    Args:
        storages: creates the storage of Services and EndpointSlices.
        by_endpoints: whether to use a ready endpoint instead of the ClusterIP.
    """

    def __init__(self, storages: StorageFactory, *, by_endpoints: bool) -> None:
        self._storages = storages
        self._by_endpoints = by_endpoints
        self._services: Lister | None = None
        self._slices: Lister | None = None

    async def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        if self._services is None:
            self._services = Lister(self._storages, SERVICES)
        service = require_service(await self._services.get(namespace, name), name)
        if not self._by_endpoints:
            return cluster_ip(service, name, port)
        port_name = endpoint_port(service, name, port)
        if self._slices is None:
            self._slices = Lister(self._storages, ENDPOINT_SLICES)
        slices = await self._slices.list(namespace, labels.from_set({SERVICE_NAME: name}))
        return endpoint(slices, service, port_name)
