"""The resources of the core API group, "" (v1)."""

from __future__ import annotations

from collections.abc import Mapping

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.events.definition import core_events
from tetrapod.core.subresources.locations import Backends
from tetrapod.core.subresources.stores import Stores
from tetrapod.core.v1 import (
    bindings,
    component_statuses,
    config_maps,
    endpoints,
    limit_ranges,
    namespaces,
    pod_templates,
    replication_controllers,
    resource_quotas,
    service_accounts,
)
from tetrapod.core.v1.nodes import definition as nodes
from tetrapod.core.v1.nodes.definition import NodeProxyRest
from tetrapod.core.v1.persistent_volume_claims import definition as persistent_volume_claims
from tetrapod.core.v1.persistent_volumes import definition as persistent_volumes
from tetrapod.core.v1.pods import definition as pods
from tetrapod.core.v1.pods.logs import LogRest
from tetrapod.core.v1.pods.proxy import PodProxyRest
from tetrapod.core.v1.pods.streams import ExecRest, PortForwardRest
from tetrapod.core.v1.secrets import definition as secrets
from tetrapod.core.v1.services import definition as services
from tetrapod.core.v1.services.proxy import ServiceProxyRest
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definitions(
    subresources: Mapping[str, Rest | Strategy], addresses: ClusterIPs, ports: NodePorts, event_ttl: int
) -> list[ResourceDefinition]:
    """Return the definitions of the core group.

    Args:
        subresources: implementations of subresources and of resources that are not stored, by path: "pods/eviction",
            "bindings", "componentstatuses", ….
        addresses: allocates the cluster IPs of services.
        ports: allocates the node ports of services.
        event_ttl: seconds until an event is deleted.

    Raises:
        KeyError: an implementation is missing.
        TypeError: "bindings" or "componentstatuses" is not a `Rest`.
    """
    return [
        bindings.definition(_rest(subresources, "bindings")),
        component_statuses.definition(_rest(subresources, "componentstatuses")),
        config_maps.definition(),
        endpoints.definition(),
        core_events(event_ttl),
        limit_ranges.definition(),
        pod_templates.definition(),
        secrets.definition(),
        namespaces.definition(),
        nodes.definition(subresources["nodes/proxy"]),
        persistent_volume_claims.definition(),
        persistent_volumes.definition(),
        pods.definition(subresources),
        replication_controllers.definition(),
        resource_quotas.definition(),
        service_accounts.definition(subresources["serviceaccounts/token"]),
        services.definition(addresses, ports, subresources["services/proxy"]),
    ]


def _rest(subresources: Mapping[str, Rest | Strategy], name: str) -> Rest:
    rest = subresources[name]
    if not isinstance(rest, Rest):
        raise TypeError(f"{name} needs a Rest")
    return rest


def streaming_subresources(
    stores: Stores, backends: Backends, authorizer: Authorizer | None, family: str
) -> dict[str, Rest]:
    """Return the subresources that forward a request to a kubelet, pod, service or node, by path such as "pods/log".

    Args:
        authorizer: checks that users who open a stream may `create` the subresource; None skips the check.
        family: the default IP family of the cluster, "IPv4" or "IPv6".
    """
    return {
        "pods/log": LogRest(stores, backends),
        "pods/exec": ExecRest(stores, backends, authorizer),
        "pods/attach": ExecRest(stores, backends, authorizer),
        "pods/portforward": PortForwardRest(stores, backends, authorizer),
        "pods/proxy": PodProxyRest(stores, backends),
        "services/proxy": ServiceProxyRest(stores, backends, family),
        "nodes/proxy": NodeProxyRest(stores, backends),
    }
