"""The list of the kinds of networking.k8s.io."""

from __future__ import annotations

from tetrapod.core.networking import ingress_classes, ip_addresses, service_cidrs
from tetrapod.core.networking import ingresses as networking_ingresses
from tetrapod.core.networking import network_policies as networking_network_policies
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group networking.k8s.io."""
    return [
        ingress_classes.definition(),
        networking_ingresses.definition(),
        ip_addresses.definition(),
        networking_network_policies.definition(),
        service_cidrs.definition(),
    ]
