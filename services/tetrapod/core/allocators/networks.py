"""Helpers for service networks: ServiceCIDR and IPAddress objects."""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

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
    """Return the networks of a ServiceCIDR."""
    return [ipaddress.ip_network(cidr) for cidr in (service_cidr.get("spec") or {}).get("cidrs") or ()]


def is_ready(service_cidr: Object) -> bool:
    """Return whether addresses may be allocated from the ServiceCIDR."""
    conditions = (service_cidr.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not service_cidr["metadata"].get("deletionTimestamp")


def contains(network: Network, address: Address) -> bool:
    """Return whether a service may have the address.

    The first address of a network and the last address of an IPv4 network are not allowed.
    """
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


def family_of(address: str) -> str:
    """Return "IPv4" or "IPv6"."""
    return "IPv6" if ":" in address else "IPv4"


def labels_of(address: str) -> dict[str, str]:
    """Return the labels of the IPAddress object."""
    return {_FAMILY_LABEL: family_of(address), _MANAGED_LABEL: MANAGED_BY}


def ip_address(address: str, namespace: str, name: str) -> Object:
    """Return the IPAddress object of a service's cluster IP."""
    return {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": address, "labels": labels_of(address)},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    }
