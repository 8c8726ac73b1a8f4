"""The Endpoints and the EndpointSlice of the Service `kubernetes`.

Upstream: pkg/controlplane/reconcilers/endpointsadapter.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.machinery.gvk import GroupVersionResource, Object

ENDPOINTS: Final = GroupVersionResource("", "v1", "endpoints")
ENDPOINT_SLICES: Final = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
_NAMESPACE, _NAME = "default", "kubernetes"
_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"


class KubernetesEndpoints:
    """An accessor of the Endpoints and the EndpointSlice of the Service `kubernetes`.

    Args:
        client: reads and writes the objects.
        port: the port of all aggregators, which must listen on the same.
    """

    def __init__(self, client: Client, port: int) -> None:
        self._client = client
        self._ports = [{"name": "https", "port": port, "protocol": "TCP"}]

    async def get(self) -> Object | None:
        """Return the Endpoints, or None if they do not exist.

        Raises:
            StatusError: the server rejected the request.
            Unavailable: the API server cannot be reached.
        """
        return await get_or_none(self._client, ENDPOINTS, _NAMESPACE, _NAME)

    def addresses_of(self, endpoints: Object) -> list[str] | None:
        """Return the IP addresses of the Endpoints; None if their ports or labels are not those that `put` writes."""
        subsets = endpoints.get("subsets") or []
        labels = endpoints["metadata"].get("labels") or {}
        if len(subsets) != 1 or subsets[0].get("ports") != self._ports or labels.get(_SKIP_MIRROR) != "true":
            return None
        return [address["ip"] for address in subsets[0].get("addresses") or []]

    async def put(self, current: Object | None, addresses: Sequence[str]) -> None:
        """Make the Endpoints and the EndpointSlice contain exactly these addresses. An object that does is not written.

        Args:
            current: the stored Endpoints; None if they do not exist.
            addresses: the IP addresses of all aggregators.

        Raises:
            StatusError: 409, another aggregator changed or created an object; others if the server rejected a request.
            Unavailable: the API server cannot be reached.
        """
        wanted = sorted(addresses)
        if current is None:
            subsets = self._subsets(wanted)
            metadata = {"name": _NAME, "namespace": _NAMESPACE, "labels": {_SKIP_MIRROR: "true"}}
            obj: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}
            await self._client.create(ENDPOINTS, _NAMESPACE, obj)
        elif (named := self.addresses_of(current)) is None or sorted(named) != wanted:
            metadata = current["metadata"]
            labels = {**(metadata.get("labels") or {}), _SKIP_MIRROR: "true"}
            obj = {**current, "metadata": {**metadata, "labels": labels}, "subsets": self._subsets(wanted)}
            await self._client.update(ENDPOINTS, _NAMESPACE, obj)
        await self._put_slice(wanted)

    def _subsets(self, addresses: Sequence[str]) -> list[Object]:
        return [{"addresses": [{"ip": address} for address in addresses], "ports": self._ports}] if addresses else []

    async def _put_slice(self, addresses: Sequence[str]) -> None:
        is_ipv6 = bool(addresses) and all(":" in address for address in addresses)
        wanted: Object = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": _NAME, "namespace": _NAMESPACE, "labels": {"kubernetes.io/service-name": _NAME}},
            "addressType": "IPv6" if is_ipv6 else "IPv4",
            "endpoints": [
                {"addresses": [address], "conditions": {"ready": True}}
                for address in addresses
                if (":" in address) == is_ipv6
            ],
            "ports": self._ports if addresses else [],
        }
        current = await get_or_none(self._client, ENDPOINT_SLICES, _NAMESPACE, _NAME)
        if current is not None and current["addressType"] != wanted["addressType"]:
            await self._client.delete(ENDPOINT_SLICES, _NAMESPACE, _NAME)
            current = None
        if current is None:
            await self._client.create(ENDPOINT_SLICES, _NAMESPACE, wanted)
            return
        same = all((current.get(key) or []) == wanted[key] for key in ("endpoints", "ports"))
        if not same or current["metadata"].get("labels") != wanted["metadata"]["labels"]:
            await self._client.update(ENDPOINT_SLICES, _NAMESPACE, wanted)
