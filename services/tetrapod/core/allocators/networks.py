"""Functions for service networks and for the ServiceCIDR and IPAddress objects that describe them."""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy
from tetrapod.machinery.gvk import GroupVersionResource, Object

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

SERVICE_CIDRS: Final = GroupVersionResource("networking.k8s.io", "v1", "servicecidrs")
IP_ADDRESSES: Final = GroupVersionResource("networking.k8s.io", "v1", "ipaddresses")
DEFAULT: Final = "kubernetes"
"""The ServiceCIDR with the network of the flag."""

MANAGED_BY: Final = "ipallocator.k8s.io"
_FAMILY_LABEL: Final = "ipaddress.kubernetes.io/ip-family"
_MANAGED_LABEL: Final = "ipaddress.kubernetes.io/managed-by"


def networks_of(service_cidr: Object) -> list[Network]:
    """Return the networks in the spec of a ServiceCIDR, in its order.

    Invalid ones, which another program has stored, are skipped: they must not stop allocation from other ServiceCIDRs.
    """
    texts = (service_cidr.get("spec") or {}).get("cidrs") or ()
    parsed = (parse_cidr_sloppy(text) for text in texts if isinstance(text, str))
    return [cidr[1] for cidr in parsed if cidr is not None]


def is_ready(service_cidr: Object) -> bool:
    """Return whether addresses may be allocated from the ServiceCIDR: it is Ready and not being deleted.

    As upstream, a ServiceCIDR without the condition counts as ready, in case its controller does not run.
    """
    ready = find_condition(service_cidr, "Ready")
    return (ready is None or ready.get("status") == "True") and not service_cidr["metadata"].get("deletionTimestamp")


def contains(network: Network, address: Address) -> bool:
    """Return whether the network contains the address and a service may have it.

    The first address of a network and the last address of an IPv4 network are not allowed.
    """
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


def hosts(network: Network) -> int:
    """Return the number of addresses of the network that services may have."""
    return max(network.num_addresses - (2 if network.version == 4 else 1), 0)


def family_of(address: str) -> str:
    """Return the IP family of an address: "IPv4" or "IPv6"."""
    return "IPv6" if ":" in address else "IPv4"


def family_of_network(network: Network) -> str:
    """Return the IP family of a network: "IPv4" or "IPv6"."""
    return f"IPv{network.version}"


def other_family(family: str) -> str:
    """Return the IP family that is not `family`."""
    return "IPv6" if family == "IPv4" else "IPv4"


def labels_of(address: str) -> dict[str, str]:
    """Return the labels of the IPAddress object with this name: its IP family and manager."""
    return {_FAMILY_LABEL: family_of(address), _MANAGED_LABEL: MANAGED_BY}


def ip_address(address: str, namespace: str, name: str) -> Object:
    """Return a new IPAddress object for a cluster IP.

    Args:
        address: the cluster IP, which is the object's name.
        namespace: the namespace of the Service that has it.
        name: the name of that service.
    """
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": address, "labels": labels_of(address)},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    }
