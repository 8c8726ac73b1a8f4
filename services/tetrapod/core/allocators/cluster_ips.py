"""Cluster IPs: an address is taken by creating the IPAddress object of its name, so that several replicas never take one twice.

Upstream: pkg/registry/core/service/ipallocator (cidrallocator.go over ipallocator.go). Addresses come from every ServiceCIDR that is
ready. The lower part of a network is for addresses that users choose; those chosen here come from the rest, as upstream's static and
dynamic bands.
"""

from __future__ import annotations

import ipaddress
import random
import time

from tetrapod.core.allocators import metrics
from tetrapod.core.allocators.networks import DEFAULT, IP_ADDRESSES, SERVICE_CIDRS, Network, contains, ip_address, is_ready, networks_of
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class AllocationError(Exception):
    """Why an address cannot be had."""


class ClusterIPs:
    """`network` is the service network of the flag; IPAddress objects are written through `client`."""

    def __init__(self, network: str, client: Client) -> None:
        self.network: Network = ipaddress.ip_network(network, strict=False)
        self._client = client
        self.service_cidrs = Informer(client, SERVICE_CIDRS)
        """To be run by whoever has a lifecycle; until the default network says that it is ready, that of the flag is all there is."""

    @property
    def family(self) -> str:
        return "IPv4" if self.network.version == 4 else "IPv6"

    @property
    def first(self) -> str:
        """The address of the `kubernetes` service."""
        return str(self.network.network_address + 1)

    def networks(self) -> list[Network]:
        """Those that addresses of our family may be taken from."""
        default = self.service_cidrs.get("", DEFAULT)
        if default is None or not (default.get("status") or {}).get("conditions"):
            return [self.network]
        ready = [network for cidr in self.service_cidrs.objects.values() if is_ready(cidr) for network in networks_of(cidr)]
        return [network for network in dict.fromkeys(ready) if network.version == self.network.version]

    async def take(self, address: str, service: Object, dry_run: bool) -> None:
        """Take a given address.

        Raises:
            AllocationError: it is in no network, or taken. A dry run, as upstream's, knows one network and not what is taken.
        """
        found = ipaddress.ip_address(address)
        networks = self.networks()
        if dry_run:
            if networks and not contains(networks[0], found):
                raise AllocationError(f"the provided IP ({found}) is not in the valid range. The range of valid IPs is {networks[0]}")
            return
        network = next((network for network in networks if contains(network, found)), None)
        if network is None:
            raise AllocationError("the provided network does not match the current range")
        began = time.monotonic()
        if not await self._create(str(found), service):
            metrics.ADDRESS_ERRORS.add((str(network), metrics.STATIC))
            raise AllocationError("provided IP is already allocated")
        self._allocated(network, metrics.STATIC, began)

    async def take_any(self, service: Object, dry_run: bool) -> str:
        """Take a free address, from a random place on; of a dry run the network's own, which no service can have.

        Raises:
            AllocationError: none is left.
        """
        networks = self.networks()
        if dry_run and networks:
            return str(networks[0].network_address)
        for network in networks:
            began = time.monotonic()
            if address := await self._take_from(network, service):
                self._allocated(network, metrics.DYNAMIC, began)
                return address
            metrics.ADDRESS_ERRORS.add((str(network), metrics.DYNAMIC))
        raise AllocationError("range is full")

    @staticmethod
    def _allocated(network: Network, scope: str, began: float) -> None:
        metrics.ADDRESS_ALLOCATIONS.add((str(network), scope))
        metrics.ADDRESS_SECONDS.observe((str(network),), time.monotonic() - began)

    async def _take_from(self, network: Network, service: Object) -> str:
        low, high = 1, network.num_addresses - (2 if network.version == 4 else 1)
        band = min(max(16, network.num_addresses // 16), 256)
        split = band + 1 if high > band + 1 else low
        for begin, end in ((split, high), (low, split - 1)):
            size = end - begin + 1
            if size <= 0:
                continue
            offset = random.randrange(size)
            for i in range(size):
                address = str(network.network_address + begin + (offset + i) % size)
                if await self._create(address, service):
                    return address
        return ""

    async def release(self, address: str) -> None:
        """Give an address back; nothing is wrong where it is free already."""
        try:
            await self._client.delete(IP_ADDRESSES, "", address)
        except StatusError as error:
            if error.code != 404:
                raise

    async def _create(self, address: str, service: Object) -> bool:
        meta = service["metadata"]
        try:
            await self._client.create(IP_ADDRESSES, "", ip_address(address, meta.get("namespace", ""), meta.get("name", "")))
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True
