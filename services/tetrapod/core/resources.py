"""The list of all resources that core serves, by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tetrapod.core.admissionregistration import resources as admissionregistration
from tetrapod.core.admissionregistration.policy_strategies import ParamAccess
from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.apiserverinternal import resources as apiserverinternal
from tetrapod.core.apps import resources as apps
from tetrapod.core.autoscaling import resources as autoscaling
from tetrapod.core.batch import resources as batch
from tetrapod.core.certificates import resources as certificates
from tetrapod.core.coordination import resources as coordination
from tetrapod.core.discovery import resources as discovery
from tetrapod.core.events import resources as events
from tetrapod.core.flowcontrol import resources as flowcontrol
from tetrapod.core.lifecycle import resources as lifecycle
from tetrapod.core.networking import resources as networking
from tetrapod.core.node import resources as node
from tetrapod.core.policy import resources as policy
from tetrapod.core.resource import resources as resource
from tetrapod.core.resource.resource_claims.strategy import ClaimAccess
from tetrapod.core.scheduling import resources as scheduling
from tetrapod.core.storage import resources as storage
from tetrapod.core.storagemigration import resources as storagemigration
from tetrapod.core.v1 import resources as v1
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.builtin import forget_facts
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The objects that the definitions of core need.

    Args:
        subresources: implementations of subresources and of resources that are not stored, by path, such as
            "pods/eviction" or "bindings".
        addresses: allocates the cluster IPs of services.
        ports: allocates the node ports of services.
        parameters: checks that a writer of an admission policy or binding may read its parameters.
        claims: checks that a writer of a resource claim may set its protected fields.
        authorizer: authorizes signers of pod certificates; None skips the check.
        event_ttl: seconds until an event is deleted.
    """

    subresources: Mapping[str, Rest | Strategy]
    addresses: ClusterIPs
    ports: NodePorts
    parameters: ParamAccess
    claims: ClaimAccess
    authorizer: Authorizer | None
    event_ttl: int = 3600


def definitions(dependencies: Dependencies) -> list[ResourceDefinition]:
    """Create the definitions of all resources of core, with new strategies.

    Then the discovery data from which they were made is dropped from its cache, to save memory.
    """
    result = [
        *v1.definitions(dependencies.subresources, dependencies.addresses, dependencies.ports, dependencies.event_ttl),
        *apps.definitions(),
        *certificates.definitions(dependencies.authorizer),
        *coordination.definitions(),
        *events.definitions(dependencies.event_ttl),
        *node.definitions(),
        *scheduling.definitions(),
        *lifecycle.definitions(),
        *flowcontrol.definitions(),
        *autoscaling.definitions(),
        *batch.definitions(),
        *networking.definitions(),
        *discovery.definitions(),
        *policy.definitions(),
        *resource.definitions(dependencies.claims),
        *storage.definitions(),
        *apiserverinternal.definitions(),
        *storagemigration.definitions(),
        *admissionregistration.definitions(dependencies.parameters),
    ]
    forget_facts()
    return result
