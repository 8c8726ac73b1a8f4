"""The allocator of cluster IPs.

It allocates an address by creating the IPAddress object with its name, so replicas never allocate an address twice.
Addresses come from all ready ServiceCIDRs. The lower part of a network is reserved for addresses that users choose;
automatic allocation prefers the rest (upstream's static and dynamic bands).
Upstream: pkg/registry/core/service/ipallocator (cidrallocator.go over ipallocator.go).
"""

from __future__ import annotations

import ipaddress
import random
import time

from tetrapod.core.allocators import metrics
from tetrapod.core.allocators.networks import (
    DEFAULT,
    IP_ADDRESSES,
    SERVICE_CIDRS,
    Network,
    contains,
    ip_address,
    is_ready,
    networks_of,
)
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class AllocationError(Exception):
    """The error for an address that cannot be allocated. Its text is the reason, in upstream's words."""


class ClusterIPs:
    """The allocator of the cluster IPs of one IP family.

    Args:
        network: the service network (--service-cluster-ip-range) of this family, in CIDR notation.
        client: writes IPAddress objects.
    """

    def __init__(self, network: str, client: Client) -> None:
        self.network: Network = ipaddress.ip_network(network, strict=False)
        self._client = client
        self.service_cidrs = Informer(client, SERVICE_CIDRS)
        """The owner of the lifecycle must run it. Until the default ServiceCIDR has a condition, only the flag's
        network is used.
        """

    @property
    def family(self) -> str:
        """The IP family, "IPv4" or "IPv6"."""
        return "IPv4" if self.network.version == 4 else "IPv6"

    @property
    def first(self) -> str:
        """The first usable address of --service-cluster-ip-range, which the service `kubernetes` has."""
        return str(self.network.network_address + 1)

    def networks(self) -> list[Network]:
        """Return the networks of this IP family from which addresses may be allocated.

        These are the networks of all ready ServiceCIDRs. Until the default ServiceCIDR has a condition, it is only that
        of --service-cluster-ip-range.
        """
        default = self.service_cidrs.get("", DEFAULT)
        if default is None or not (default.get("status") or {}).get("conditions"):
            return [self.network]
        ready = [
            network for cidr in self.service_cidrs.objects.values() if is_ready(cidr) for network in networks_of(cidr)
        ]
        return [network for network in dict.fromkeys(ready) if network.version == self.network.version]

    async def take(self, address: str, service: Object, dry_run: bool) -> None:
        """Allocate this address for the service by creating its IPAddress.

        A dry run creates nothing and checks only, as upstream, that the first network contains the address.

        Raises:
            AllocationError: the address is in no network or allocated.
        """
        parsed = ipaddress.ip_address(address)
        networks = self.networks()
        if dry_run:
            if networks and not contains(networks[0], parsed):
                raise AllocationError(
                    f"the provided IP ({parsed}) is not in the valid range. The range of valid IPs is {networks[0]}"
                )
            return
        network = next((network for network in networks if contains(network, parsed)), None)
        if network is None:
            raise AllocationError("the provided network does not match the current range")
        started = time.monotonic()
        if not await self._create(str(parsed), service):
            metrics.ADDRESS_ERRORS.add((str(network), metrics.STATIC))
            raise AllocationError("provided IP is already allocated")
        self._allocated(network, metrics.STATIC, started)

    async def take_any(self, service: Object, dry_run: bool) -> str:
        """Allocate a free address for the service and return it. The search starts at a random address.

        A dry run allocates nothing and returns the network address, which no service can have.

        Raises:
            AllocationError: no address is free.
        """
        networks = self.networks()
        if dry_run and networks:
            return str(networks[0].network_address)
        for network in networks:
            started = time.monotonic()
            if address := await self._take_from(network, service):
                self._allocated(network, metrics.DYNAMIC, started)
                return address
            metrics.ADDRESS_ERRORS.add((str(network), metrics.DYNAMIC))
        raise AllocationError("range is full")

    @staticmethod
    def _allocated(network: Network, scope: str, began: float) -> None:
        metrics.ADDRESS_ALLOCATIONS.add((str(network), scope))
        metrics.ADDRESS_SECONDS.observe((str(network),), time.monotonic() - began)

    async def _take_from(self, network: Network, service: Object) -> str:
        """Allocate an address of the network and return it; return "" if none is free.

        The static band, at the beginning of the network, is used only when the rest is allocated.
        """
        first, last = 1, network.num_addresses - (2 if network.version == 4 else 1)
        static_size = min(max(16, network.num_addresses // 16), 256)
        dynamic_start = static_size + 1 if last > static_size + 1 else first
        for start, end in ((dynamic_start, last), (first, dynamic_start - 1)):
            size = end - start + 1
            if size <= 0:
                continue
            offset = random.randrange(size)
            for i in range(size):
                address = str(network.network_address + start + (offset + i) % size)
                if await self._create(address, service):
                    return address
        return ""

    async def release(self, address: str) -> None:
        """Delete the IPAddress; an address that is not allocated is ignored."""
        try:
            await self._client.delete(IP_ADDRESSES, "", address)
        except StatusError as error:
            if error.code != 404:
                raise

    async def _create(self, address: str, service: Object) -> bool:
        """Create the IPAddress of the service and return True; return False if the IPAddress exists."""
        meta = service["metadata"]
        try:
            await self._client.create(
                IP_ADDRESSES, "", ip_address(address, meta.get("namespace", ""), meta.get("name", ""))
            )
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True
