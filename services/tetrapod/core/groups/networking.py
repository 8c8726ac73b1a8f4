"""networking.k8s.io/v1 and discovery.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import networking as defaults
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import networking as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition

GROUP = "networking.k8s.io"


def definitions() -> list[ResourceDefinition]:
    ingress = KindStrategy(status=True, generation=["spec"])
    cidr = KindStrategy(status=True, generation=["spec"])
    return [
        builtin(
            GROUP, "ingressclasses", KindStrategy(default=defaults.default_ingress_class, generation=["spec"]), table=tables.INGRESS_CLASSES
        ),
        builtin(
            GROUP,
            "ingresses",
            ingress,
            storage_prefix="ingress",
            table=tables.INGRESSES,
            subresources={"status": status_of(ingress)},
        ),
        builtin(GROUP, "ipaddresses", KindStrategy(), table=tables.IP_ADDRESSES),
        builtin(
            GROUP,
            "networkpolicies",
            KindStrategy(default=defaults.default_network_policy, generation=["spec"]),
            table=tables.NETWORK_POLICIES,
        ),
        builtin(GROUP, "servicecidrs", cidr, table=tables.SERVICE_CIDRS, subresources={"status": status_of(cidr)}),
        builtin(
            "discovery.k8s.io",
            "endpointslices",
            KindStrategy(default=defaults.default_endpoint_slice, generation=["addressType", "endpoints", "ports"]),
            table=tables.ENDPOINT_SLICES,
        ),
    ]
