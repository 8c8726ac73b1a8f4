"""Informers of Services and EndpointSlices, with notification about changes by Service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy.resolver import SERVICE_NAME
from tetrapod.machinery.gvk import GroupVersionResource, Object

SERVICES: Final = GroupVersionResource("", "v1", "services")
ENDPOINT_SLICES: Final = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")


class ClusterInformers:
    """The Services and EndpointSlices of the cluster, from two informers.

    Listeners are notified of the Service that a change concerns.

    Args:
        client: lists and watches both resources.
    """

    def __init__(self, client: Client) -> None:
        self._services = Informer(client, SERVICES)
        self._slices = Informer(client, ENDPOINT_SLICES)
        self._by_service: dict[tuple[str, str], dict[str, Object]] = {}
        self._listeners: list[Callable[[str, str], None]] = []
        self._services.handlers.append(self._service_changed)
        self._slices.handlers.append(self._slice_changed)

    def on_change(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener(namespace, name)` for every Service that changes or whose EndpointSlices change."""
        self._listeners.append(listener)

    def start(self, lifecycle: Lifecycle) -> None:
        """Start both informers; the server is not ready until they have synced."""
        lifecycle.follow("services", self._services)
        lifecycle.follow("endpointslices", self._slices)

    async def synced(self) -> None:
        """Wait until both informers have synced."""
        await self._services.synced.wait()
        await self._slices.synced.wait()

    def service(self, namespace: str, name: str) -> Object | None:
        """Return the Service, or None if the informer does not have it."""
        return self._services.get(namespace, name)

    def endpoint_slices(self, namespace: str, name: str) -> list[Object]:
        """Return the EndpointSlices whose label names this Service; [] for a Service without slices."""
        return list(self._by_service.get((namespace, name), {}).values())

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        self._notify(metadata["namespace"], metadata["name"])

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            if obj is None:
                continue
            metadata = obj["metadata"]
            service = (metadata.get("labels") or {}).get(SERVICE_NAME)
            if not service:
                continue
            key = metadata["namespace"], service
            slices = self._by_service.setdefault(key, {})
            if obj is new:
                slices[metadata["name"]] = obj
            else:
                slices.pop(metadata["name"], None)
            if not slices:
                del self._by_service[key]
            self._notify(metadata["namespace"], service)

    def _notify(self, namespace: str, name: str) -> None:
        for listener in self._listeners:
            listener(namespace, name)
