"""Cluster IPs: an address is taken by creating the IPAddress object of its name, so that several replicas never take one twice.

Upstream: pkg/registry/core/service/ipallocator (the IPAddress allocator). The lower part of the network is for addresses that
users choose; those chosen here come from the rest, as upstream's static and dynamic bands.
"""

from __future__ import annotations

import ipaddress
import random
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MANAGED_BY: Final = "ipallocator.k8s.io"
IP_ADDRESSES: Final = GroupVersionResource("networking.k8s.io", "v1", "ipaddresses")


class AllocationError(Exception):
    """Why an address cannot be had."""


class ClusterIPs:
    """`network` is the service network; IPAddress objects are written through `client`."""

    def __init__(self, network: str, client: Client) -> None:
        self.network: Network = ipaddress.ip_network(network, strict=False)
        self._client = client

    @property
    def family(self) -> str:
        return "IPv4" if self.network.version == 4 else "IPv6"

    @property
    def first(self) -> str:
        """The address of the `kubernetes` service."""
        return str(self.network.network_address + 1)

    async def take(self, address: str, service: Object, dry_run: bool) -> None:
        """Take a given address.

        Raises:
            AllocationError: it is outside of the network, or taken.
        """
        found = ipaddress.ip_address(address)
        if found not in self.network or found in (self.network.network_address, self._last):
            raise AllocationError("the provided network does not match the current range")
        if not await self._create(str(found), service, dry_run):
            raise AllocationError("provided IP is already allocated")

    async def take_any(self, service: Object, dry_run: bool) -> str:
        """Take a free address, from a random place on.

        Raises:
            AllocationError: none is left.
        """
        low, high = 1, self.network.num_addresses - (2 if self.network.version == 4 else 1)
        band = min(max(16, self.network.num_addresses // 16), 256)
        split = band + 1 if high > band + 1 else low
        for begin, end in ((split, high), (low, split - 1)):
            size = end - begin + 1
            if size <= 0:
                continue
            offset = random.randrange(size)
            for i in range(size):
                address = str(self.network.network_address + begin + (offset + i) % size)
                if await self._create(address, service, dry_run):
                    return address
        raise AllocationError("range is full")

    async def release(self, address: str) -> None:
        """Give an address back; nothing is wrong where it is free already."""
        try:
            await self._client.delete(IP_ADDRESSES, "", address)
        except StatusError as error:
            if error.code != 404:
                raise

    @property
    def _last(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        return self.network.broadcast_address if self.network.version == 4 else None

    async def _create(self, address: str, service: Object, dry_run: bool) -> bool:
        if dry_run:
            return await self._is_free(address)
        meta = service["metadata"]
        obj: Object = {
            "kind": "IPAddress",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": {
                "name": address,
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": self.family,
                    "ipaddress.kubernetes.io/managed-by": _MANAGED_BY,
                },
            },
            "spec": {"parentRef": {"resource": "services", "namespace": meta.get("namespace", ""), "name": meta.get("name", "")}},
        }
        try:
            await self._client.create(IP_ADDRESSES, "", obj)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True

    async def _is_free(self, address: str) -> bool:
        try:
            await self._client.get(IP_ADDRESSES, "", address)
        except StatusError as error:
            if error.code != 404:
                raise
            return True
        return False
