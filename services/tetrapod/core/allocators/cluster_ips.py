"""The allocator of cluster IPs.

It allocates an address by creating the IPAddress object with its name, so replicas never allocate an address twice.
Addresses come from all ready ServiceCIDRs. The lower part of a network is reserved for addresses that users choose;
automatic allocation prefers the rest (upstream's static and dynamic bands).
Upstream: pkg/registry/core/service/ipallocator (cidrallocator.go over ipallocator.go).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Final

from tetrapod.core.allocators import metrics
from tetrapod.core.allocators.networks import (
    DEFAULT,
    IP_ADDRESSES,
    SERVICE_CIDRS,
    Network,
    contains,
    family_of,
    family_of_network,
    hosts,
    ip_address,
    is_ready,
    networks_of,
)
from tetrapod.core.allocators.service_ranges import first_address
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_SHORTEST_V6_PREFIX: Final = 64
"""The shortest prefix of an IPv6 network in which addresses are allocated."""
_AT_ONCE: Final = 1000
"""Addresses that the search for a free one examines in one step of the event loop: about a millisecond."""


class AllocationError(Exception):
    """The error for an address that cannot be allocated. Its text is the reason, in upstream's words."""


class RangeFullError(AllocationError):
    """The error if no network of the IP family has a free address."""


class ClusterIPs:
    """The allocator of the cluster IPs of all IP families of the cluster.

    Args:
        ranges: the service networks (--service-cluster-ip-range), one or two of different IP families; the first is the
            primary one.
        client: writes IPAddress objects.
    """

    def __init__(self, ranges: Sequence[Network], client: Client) -> None:
        self.ranges = tuple(ranges)
        self.families: tuple[str, ...] = tuple(map(family_of_network, ranges))
        """The IP families of the cluster, the default one first: "IPv4" and "IPv6"."""
        self._client = client
        self.service_cidrs = Informer(client, SERVICE_CIDRS)
        """An informer of ServiceCIDRs, which the creator of this object must run.

        Until the default ServiceCIDR exists, addresses come only from the networks of the flag.
        """
        self.ip_addresses = Informer(client, IP_ADDRESSES)
        """An informer of IPAddresses, which the creator of this object must run.

        The search for a free address skips the addresses that it contains.
        """

    @property
    def first(self) -> str:
        """The first usable address of the primary network, which the service `kubernetes` has."""
        return first_address(self.ranges[0])

    def networks(self, family: str = "") -> list[Network]:
        """Return the networks from which addresses may be allocated.

        These are the networks of all ready ServiceCIDRs. Until the default ServiceCIDR exists, they are only those of
        --service-cluster-ip-range.

        Args:
            family: the IP family of the networks; "" for all families of the cluster.
        """
        families = (family,) if family else self.families
        if self.service_cidrs.get("", DEFAULT) is None:
            return [network for network in self.ranges if family_of_network(network) in families]
        ready = [
            network for cidr in self.service_cidrs.objects.values() if is_ready(cidr) for network in networks_of(cidr)
        ]
        return [
            network
            for network in dict.fromkeys(ready)
            if family_of_network(network) in families
            and (network.version == 4 or network.prefixlen >= _SHORTEST_V6_PREFIX)
        ]

    def taken(self) -> list[str]:
        """Return the allocated addresses: the names of all IPAddresses in the informer."""
        return [name for _, name in list(self.ip_addresses.objects)]

    async def take(self, address: str, service: Object, dry_run: bool) -> None:
        """Allocate this address for the service by creating its IPAddress.

        A dry run creates nothing and checks only, as upstream, that the first network of the address's IP family
        contains the address.

        Raises:
            AllocationError: the address is malformed, in no network or allocated, or its IPAddress is rejected.
        """
        parsed = parse_sloppy(address)
        if parsed is None:
            raise AllocationError(f'failed to parse service IP "{address}"')
        networks = self.networks(family_of(address))
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
        if not await self._create(str(parsed), service, network, metrics.STATIC):
            raise AllocationError("provided IP is already allocated")
        metrics.ADDRESS_SECONDS.observe((str(network),), time.monotonic() - started)

    async def take_any(self, family: str, service: Object, dry_run: bool) -> str:
        """Allocate a free address for the service and return it. The search starts at a random address.

        A dry run allocates nothing and returns the network address, which no service can have.

        Args:
            family: the IP family of the address, one of `families`.
            service: the service.
            dry_run: whether to allocate nothing.

        Raises:
            RangeFullError: no address is free.
            AllocationError: the IPAddress is rejected.
        """
        networks = self.networks(family)
        if dry_run and networks:
            return str(networks[0].network_address)
        for network in networks:
            started = time.monotonic()
            if address := await self._take_from(network, service):
                metrics.ADDRESS_SECONDS.observe((str(network),), time.monotonic() - started)
                return address
            metrics.ADDRESS_ERRORS.add((str(network), metrics.DYNAMIC))
        raise RangeFullError("range is full")

    async def _take_from(self, network: Network, service: Object) -> str:
        """Allocate an address of the network and return it; return "" if none is free.

        The static band, at the beginning of the network, is used only when the rest is allocated.

        Raises:
            AllocationError: the IPAddress is rejected, for example by an admission policy.
            StatusError: the store is not available.
        """
        first, last = 1, hosts(network)
        static_size = min(max(16, network.num_addresses // 16), 256)
        dynamic_start = static_size + 1 if last > static_size + 1 else first
        for start, end in ((dynamic_start, last), (first, dynamic_start - 1)):
            size = end - start + 1
            if size <= 0:
                continue
            offset = random.randrange(size)
            for i in range(size):
                if i % _AT_ONCE == _AT_ONCE - 1:
                    await asyncio.sleep(0)
                address = str(network.network_address + start + (offset + i) % size)
                if self.ip_addresses.get("", address) is None and await self._create(
                    address, service, network, metrics.DYNAMIC
                ):
                    return address
        return ""

    async def release(self, address: str) -> None:
        """Delete the IPAddress of a cluster IP, so that it can be allocated again.

        An invalid address, or one that is not allocated, is ignored. An address of an IP family that the cluster no
        longer has is ignored too, as upstream: the controller that repairs cluster IPs deletes its IPAddress.

        Raises:
            StatusError: the deletion was rejected with a code other than 404.
            Unavailable: the server cannot be reached.
        """
        parsed = parse_sloppy(address)
        if parsed is None or family_of(address) not in self.families:
            return
        try:
            await self._client.delete(IP_ADDRESSES, "", str(parsed))
        except StatusError as error:
            if error.code != 404:
                raise

    async def _create(self, address: str, service: Object, network: Network, scope: str) -> bool:
        """Create the IPAddress of the service and return True; return False if the IPAddress exists.

        Args:
            address: the address.
            service: the service.
            network: the network of the address, for the metrics.
            scope: how the address was chosen, for the metrics: `metrics.STATIC` by the user, `metrics.DYNAMIC` by this
                allocator.

        Raises:
            AllocationError: the IPAddress is rejected, for example by an admission policy.
            StatusError: the store is not available. Upstream responds with 422 then too, which clients do not retry.
        """
        meta = service["metadata"]
        try:
            await self._client.create(
                IP_ADDRESSES, "", ip_address(address, meta.get("namespace", ""), meta.get("name", ""))
            )
        except StatusError as error:
            metrics.ADDRESS_ERRORS.add((str(network), scope))
            if error.reason == "AlreadyExists":
                return False
            if error.code >= 500 or error.code == 429:
                raise
            raise AllocationError(error.message) from None
        metrics.ADDRESS_ALLOCATIONS.add((str(network), scope))
        return True
