"""The resource definition of services."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.v1.services.store import ServiceStore
from tetrapod.core.v1.services.strategy import ServiceStatusStrategy, ServiceStrategy
from tetrapod.core.v1.services.table import TABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definition(addresses: ClusterIPs, ports: NodePorts, proxy: Rest | Strategy) -> ResourceDefinition:
    """Return the definition of services.

    Args:
        addresses: allocates cluster IPs.
        ports: allocates node ports.
        proxy: the implementation of `services/proxy`.
    """
    strategy = ServiceStrategy(addresses, ports)
    resource = builtin(
        "",
        "services",
        strategy,
        storage_prefix="services/specs",
        table=TABLE,
        subresources={"proxy": proxy, "status": ServiceStatusStrategy(strategy)},
    )
    return replace(resource, store=ServiceStore)
