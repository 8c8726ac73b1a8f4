"""Metrics of the allocators.

The allocated addresses of a network are counted from the IPAddress objects when the metrics are read.

Upstream: pkg/registry/core/service/{ipallocator,portallocator}/metrics.go.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Final, Protocol

from tetrapod.core.allocators.networks import Network, contains, hosts
from tetrapod.generic.metrics.counters import Counter, Gauge, GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.golang.ip_addresses import parse_strict

_IPS: Final = "kube_apiserver_clusterip_allocator_"
_PORTS: Final = "kube_apiserver_nodeport_allocator_"
_CIDR: Final = ("cidr",)
ADDRESS_ALLOCATIONS: Final = Counter(_IPS + "allocation_total", "Number of Cluster IPs allocations", ("cidr", "scope"))
ADDRESS_ERRORS: Final = Counter(
    _IPS + "allocation_errors_total", "Number of errors trying to allocate Cluster IPs", ("cidr", "scope")
)
ADDRESS_SECONDS: Final = Histogram(
    _IPS + "allocation_duration_seconds",
    "Duration in seconds to allocate a Cluster IP by ServiceCIDR",
    _CIDR,
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
PORTS_TAKEN: Final = Gauge(_PORTS + "allocated_ports", "Gauge measuring the number of allocated NodePorts for Services")
PORTS_FREE: Final = Gauge(_PORTS + "available_ports", "Gauge measuring the number of available NodePorts for Services")
PORT_ALLOCATIONS: Final = Counter(_PORTS + "allocation_total", "Number of NodePort allocations", ("scope",))
PORT_ERRORS: Final = Counter(
    _PORTS + "allocation_errors_total", "Number of errors trying to allocate NodePort", ("scope",)
)
REPAIRED_PORTS: Final = Counter(
    "apiserver_nodeport_repair_port_errors_total",
    "Number of errors detected on ports by the repair loop broken down by type of error: leak, repair, full, "
    "outOfRange, duplicate, unknown",
    ("type",),
)
PORT_REPAIR_ERRORS: Final = Counter(
    "apiserver_nodeport_repair_reconcile_errors_total",
    "Number of reconciliation failures on the nodeport repair reconcile loop",
)
STATIC, DYNAMIC = "static", "dynamic"
_MOST: Final = 2**63 - 1
"""The largest number of free addresses that upstream reports."""


class Addresses(Protocol):
    """The methods of the allocator `ClusterIPs` that the gauges of allocated and available addresses call."""

    def networks(self) -> list[Network]:
        """Return the networks from which addresses are allocated."""
        ...

    def taken(self) -> Iterable[str]:
        """Return the allocated addresses of all IP families, according to this process's informer of IPAddresses."""
        ...


_known: Final[weakref.WeakSet[Addresses]] = weakref.WeakSet()


def register(addresses: Addresses) -> None:
    """Include an allocator in the gauges of allocated and available addresses, for as long as the allocator exists."""
    _known.add(addresses)


def _counts() -> dict[Network, tuple[int, int]]:
    """Return, by network, the numbers of allocated and of free addresses of the registered allocators, as a pair."""
    counts: dict[Network, tuple[int, int]] = {}
    for addresses in list(_known):
        taken = [address for name in addresses.taken() if (address := parse_strict(name)) is not None]
        for network in addresses.networks():
            count = sum(contains(network, address) for address in taken)
            counts[network] = count, max(min(hosts(network), _MOST) - count, 0)
    return counts


GaugeFunction(
    _IPS + "allocated_ips",
    "Gauge measuring the number of allocated IPs for Services",
    _CIDR,
    lambda: [((str(network),), float(count)) for network, (count, _) in _counts().items()],
)
GaugeFunction(
    _IPS + "available_ips",
    "Gauge measuring the number of available IPs for Services",
    _CIDR,
    lambda: [((str(network),), float(count)) for network, (_, count) in _counts().items()],
)
