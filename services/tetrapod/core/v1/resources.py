"""The resources of the core API group, "" (v1)."""

from __future__ import annotations

from collections.abc import Mapping

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.defaults import workloads
from tetrapod.core.groups.events import core_events
from tetrapod.core.kind_strategy import KindStrategy, status_of
from tetrapod.core.podspec import templates
from tetrapod.core.podspec.defaults import default_pod_template
from tetrapod.core.strategies.pods import PodStatusStrategy, PodStrategy
from tetrapod.core.subresources.scale import scale
from tetrapod.core.tables import pods as pod_tables
from tetrapod.core.v1 import component_statuses, config_maps, endpoints, limit_ranges, namespaces, resource_quotas, service_accounts
from tetrapod.core.v1.nodes import definition as nodes
from tetrapod.core.v1.persistent_volume_claims import definition as persistent_volume_claims
from tetrapod.core.v1.persistent_volumes import definition as persistent_volumes
from tetrapod.core.v1.secrets import definition as secrets
from tetrapod.core.v1.services import definition as services
from tetrapod.core.warnings import workloads as workload_warnings
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy


def definitions(rests: Mapping[str, Rest | Strategy], addresses: ClusterIPs, ports: NodePorts, event_ttl: int) -> list[ResourceDefinition]:
    """Return the definitions of the group.

    Args:
        rests: implementations of subresources and virtual resources by path: "pods/eviction", "bindings", "componentstatuses" and others.
        event_ttl: seconds until an event is deleted.
    """
    return [
        bindings_definition(_rest(rests, "bindings")),
        component_statuses.definition(_rest(rests, "componentstatuses")),
        config_maps.definition(),
        endpoints.definition(),
        core_events(event_ttl),
        limit_ranges.definition(),
        pod_templates_definition(),
        secrets.definition(),
        namespaces.definition(),
        nodes.definition(rests["nodes/proxy"]),
        persistent_volume_claims.definition(),
        persistent_volumes.definition(),
        pods_definition(rests),
        replication_controllers_definition(),
        resource_quotas.definition(),
        service_accounts.definition(rests["serviceaccounts/token"]),
        services.definition(addresses, ports, rests["services/proxy"]),
    ]


def _rest(rests: Mapping[str, Rest | Strategy], name: str) -> Rest:
    rest = rests[name]
    if not isinstance(rest, Rest):
        raise TypeError(f"{name} needs a Rest")
    return rest


def bindings_definition(rest: Rest) -> ResourceDefinition:
    """Return the definition of bindings, which are only created."""
    return builtin("", "bindings", Strategy(), rest=rest)


def pod_templates_definition() -> ResourceDefinition:
    """Return the definition of podtemplates."""
    strategy = KindStrategy(
        default=lambda o: default_pod_template(o.get("template")),
        generation=["template"],
        returns_deleted=True,
        validate=templates.validate,
        template=("template",),
        warnings=workload_warnings.pod_template,
    )
    return builtin("", "podtemplates", strategy, table=pod_tables.POD_TEMPLATES)


def pods_definition(rests: Mapping[str, Rest | Strategy]) -> ResourceDefinition:
    """Return the definition of pods."""
    strategy = PodStrategy()
    paths = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize")
    return builtin(
        "",
        "pods",
        strategy,
        table=pod_tables.PODS,
        subresources={**{path: rests[f"pods/{path}"] for path in paths}, "status": PodStatusStrategy(strategy)},
    )


def replication_controllers_definition() -> ResourceDefinition:
    """Return the definition of replicationcontrollers."""
    strategy = KindStrategy(
        default=workloads.default_replication_controller,
        status=True,
        initial_status={"replicas": 0},
        generation=["spec"],
        validate=templates.validate_controller,
        template=("spec", "template"),
        warnings=workload_warnings.replication_controller,
        name=lambda name, prefix: [],  # validation checks the name
        fields={"status.replicas": lambda o: str((o.get("status") or {}).get("replicas", 0))},
    )
    strategy.garbage_collection_default = "Orphan"
    return builtin(
        "",
        "replicationcontrollers",
        strategy,
        storage_prefix="controllers",
        table=pod_tables.REPLICATION_CONTROLLERS,
        subresources={"scale": scale(), "status": status_of(strategy, validate=templates.validate_controller_status)},
    )
