"""The list of all resources that core serves, by group."""

from __future__ import annotations

from collections.abc import Mapping

from tetrapod.core.admissionregistration import resources as admissionregistration_resources
from tetrapod.core.admissionregistration.policy_strategies import ParamAccess
from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.apps import resources as apps_resources
from tetrapod.core.autoscaling import resources as autoscaling_resources
from tetrapod.core.batch import resources as batch_resources
from tetrapod.core.certificates import resources as certificates_resources
from tetrapod.core.coordination import resources as coordination_resources
from tetrapod.core.discovery import resources as discovery_resources
from tetrapod.core.events import resources as events_resources
from tetrapod.core.flowcontrol import resources as flowcontrol_resources
from tetrapod.core.networking import resources as networking_resources
from tetrapod.core.node import resources as node_resources
from tetrapod.core.policy import resources as policy_resources
from tetrapod.core.resource import resources as resource_resources
from tetrapod.core.resource.resource_claims.strategy import ClaimAccess
from tetrapod.core.scheduling import resources as scheduling_resources
from tetrapod.core.storage import resources as storage_resources
from tetrapod.core.storagemigration import resources
from tetrapod.core.v1 import resources as v1
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.builtin import forget_facts
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definitions(
    subresources: Mapping[str, Rest | Strategy],
    addresses: ClusterIPs,
    ports: NodePorts,
    params: ParamAccess,
    devices: ClaimAccess,
    authorizer: Authorizer | None,
    event_ttl: int = 3600,
) -> list[ResourceDefinition]:
    """Return the definitions of all resources of core.

    Args:
        subresources: implementations of subresources and virtual resources by path.
        event_ttl: seconds until an event is deleted.
    """
    result = [
        *v1.definitions(subresources, addresses, ports, event_ttl),
        *apps_resources.definitions(),
        *certificates_resources.definitions(authorizer),
        *coordination_resources.definitions(),
        *events_resources.definitions(event_ttl),
        *node_resources.definitions(),
        *scheduling_resources.definitions(),
        *flowcontrol_resources.definitions(),
        *autoscaling_resources.definitions(),
        *batch_resources.definitions(),
        *networking_resources.definitions(),
        *discovery_resources.definitions(),
        *policy_resources.definitions(),
        *resource_resources.definitions(devices),
        *storage_resources.definitions(),
        *resources.definitions(),
        *admissionregistration_resources.definitions(params),
    ]
    forget_facts()
    return result
