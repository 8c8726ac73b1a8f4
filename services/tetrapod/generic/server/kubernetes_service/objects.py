"""The Endpoints and the EndpointSlice of the Service `kubernetes`.

Upstream: pkg/controlplane/reconcilers/endpointsadapter.go
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
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
        port: the port of this aggregator. All should listen on the same, because clients find only one port.
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
        """Return the IP addresses of the Endpoints; None unless they have exactly one subset, as those of `put`."""
        subsets = endpoints.get("subsets") or []
        return [address["ip"] for address in subsets[0].get("addresses") or []] if len(subsets) == 1 else None

    async def put(self, current: Object | None, addresses: Sequence[str], own: str) -> None:
        """Make the Endpoints and the EndpointSlice contain exactly these addresses. An object that does is not written.

        As upstream, the port of aggregators that are already listed is kept, even if this one listens on another.

        Args:
            current: the stored Endpoints; None if they do not exist.
            addresses: the IP addresses of all aggregators.
            own: the IP address of this aggregator, which need not be among them.

        Raises:
            StatusError: 409, another aggregator changed or created an object; others if the server rejected a request.
            Unavailable: the API server cannot be reached.
        """
        wanted = sorted(addresses)
        ports = self._ports_beside(current, {*addresses} - {own})
        subsets = [{"addresses": [{"ip": address} for address in wanted], "ports": ports}] if wanted else []
        if current is None:
            metadata = {"name": _NAME, "namespace": _NAMESPACE, "labels": {_SKIP_MIRROR: "true"}}
            obj: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}
            await self._client.create(ENDPOINTS, _NAMESPACE, obj)
        elif not self._contains(current, wanted, ports):
            metadata = current["metadata"]
            labels = {**(metadata.get("labels") or {}), _SKIP_MIRROR: "true"}
            obj = {**current, "metadata": {**metadata, "labels": labels}, "subsets": subsets}
            await self._client.update(ENDPOINTS, _NAMESPACE, obj)
        await self._put_slice(wanted, ports)

    def _ports_beside(self, current: Object | None, others: AbstractSet[str]) -> list[Object]:
        """Return the ports of the Endpoints if they list one of these other aggregators, else this aggregator's."""
        if current is None or others.isdisjoint(self.addresses_of(current) or ()):
            return self._ports
        ports: list[Object] = current["subsets"][0].get("ports") or []
        return ports

    def _contains(self, current: Object, wanted: Sequence[str], ports: Sequence[Object]) -> bool:
        """Return whether the Endpoints have the label of `put`, and exactly these addresses and ports."""
        named = self.addresses_of(current)
        if named is None or (current["metadata"].get("labels") or {}).get(_SKIP_MIRROR) != "true":
            return False
        return sorted(named) == wanted and (current["subsets"][0].get("ports") or []) == ports

    async def _put_slice(self, addresses: Sequence[str], ports: Sequence[Object]) -> None:
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
            "ports": ports if addresses else [],
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
