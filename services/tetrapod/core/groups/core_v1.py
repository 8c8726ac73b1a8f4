"""Resource definitions of core/v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.defaults import cluster, networking, volumes, workloads
from tetrapod.core.groups.events import core_events
from tetrapod.core.kind_strategy import KindStrategy, status_of
from tetrapod.core.podspec import templates
from tetrapod.core.podspec.defaults import default_pod_template
from tetrapod.core.strategies.claims import ClaimStatusStrategy, ClaimStrategy
from tetrapod.core.strategies.limit_ranges import LimitRangeStrategy
from tetrapod.core.strategies.namespace_store import NamespaceStore
from tetrapod.core.strategies.namespaces import NamespaceFinalizeStrategy, NamespaceStatusStrategy, NamespaceStrategy
from tetrapod.core.strategies.nodes import NodeStatusStrategy, NodeStrategy
from tetrapod.core.strategies.persistent_volumes import VolumeStatusStrategy, VolumeStrategy
from tetrapod.core.strategies.pods import PodStatusStrategy, PodStrategy
from tetrapod.core.strategies.service_accounts import ServiceAccountStrategy
from tetrapod.core.strategies.service_store import ServiceStore
from tetrapod.core.strategies.services import ServiceStatusStrategy, ServiceStrategy
from tetrapod.core.subresources.scale import scale
from tetrapod.core.tables import cluster as tables
from tetrapod.core.tables import networking as network_tables
from tetrapod.core.tables import pods as pod_tables
from tetrapod.core.tables import storage as storage_tables
from tetrapod.core.validation import claims, configmaps, endpoints, limit_ranges, nodes, quotas, secrets, volumes_persistent
from tetrapod.core.warnings import cluster as cluster_warnings
from tetrapod.core.warnings import volumes as volume_warnings
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
        builtin("", "bindings", Strategy(), rest=_rest(rests, "bindings")),
        builtin(
            "",
            "componentstatuses",
            Strategy(),
            rest=_rest(rests, "componentstatuses"),
            table=tables.COMPONENT_STATUSES,
            deprecated={"v1": "v1 ComponentStatus is deprecated in v1.19+"},
        ),
        *_simple(event_ttl),
        _namespaces(),
        _nodes(rests),
        *_volumes(),
        _pods(rests),
        _replication_controllers(),
        _quotas(),
        builtin(
            "",
            "serviceaccounts",
            ServiceAccountStrategy(
                returns_deleted=True, warnings=cluster_warnings.service_account_warnings, revalidates_generate_name=True
            ),
            table=tables.SERVICE_ACCOUNTS,
            subresources={"token": rests["serviceaccounts/token"]},
        ),
        _services(rests, addresses, ports),
    ]


def _rest(rests: Mapping[str, Rest | Strategy], name: str) -> Rest:
    rest = rests[name]
    if not isinstance(rest, Rest):
        raise TypeError(f"{name} needs a Rest")
    return rest


def _simple(event_ttl: int) -> list[ResourceDefinition]:
    secret = KindStrategy(
        default=cluster.default_secret,
        fields={"type": lambda o: o.get("type") or ""},
        validate=secrets.validate,
        whole_update=secrets.validate_update,
        warnings=cluster_warnings.secret_warnings,
        revalidates_generate_name=True,
    )
    return [
        builtin(
            "",
            "configmaps",
            KindStrategy(validate=configmaps.validate, whole_update=configmaps.validate_update, revalidates_generate_name=True),
            table=tables.CONFIG_MAPS,
        ),
        builtin(
            "",
            "endpoints",
            KindStrategy(
                default=networking.default_endpoints,
                create_on_update=True,
                validate=endpoints.validate,
                whole_update=endpoints.validate_update,
                revalidates_generate_name=True,
            ),
            storage_prefix="services/endpoints",
            table=network_tables.ENDPOINTS,
            deprecated={"v1": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
        ),
        core_events(event_ttl),
        builtin(
            "",
            "limitranges",
            LimitRangeStrategy(
                default=cluster.default_limit_range, create_on_update=True, validate=limit_ranges.validate, revalidates_generate_name=True
            ),
        ),
        builtin(
            "",
            "podtemplates",
            KindStrategy(
                default=lambda o: default_pod_template(o.get("template")),
                generation=["template"],
                returns_deleted=True,
                validate=templates.validate,
                template=("template",),
                warnings=workload_warnings.pod_template,
            ),
            table=pod_tables.POD_TEMPLATES,
        ),
        builtin("", "secrets", secret, table=tables.SECRETS),
    ]


def _namespaces() -> ResourceDefinition:
    subresources = {"finalize": NamespaceFinalizeStrategy(), "status": NamespaceStatusStrategy()}
    for strategy in subresources.values():
        strategy.namespaced = False
    return replace(builtin("", "namespaces", NamespaceStrategy(), table=tables.NAMESPACES, subresources=subresources), store=NamespaceStore)


def _nodes(rests: Mapping[str, Rest | Strategy]) -> ResourceDefinition:
    node = NodeStrategy(
        default=cluster.default_node,
        status=True,
        validate=nodes.validate,
        whole_update=nodes.validate_update,
        warnings=cluster_warnings.node_warnings,
        revalidates_generate_name=True,
        fields={"spec.unschedulable": lambda o: "true" if (o.get("spec") or {}).get("unschedulable") else "false"},
    )
    return builtin(
        "",
        "nodes",
        node,
        storage_prefix="minions",
        table=tables.NODES,
        subresources={"proxy": rests["nodes/proxy"], "status": NodeStatusStrategy(node, validate=nodes.validate_status)},
    )


def _volumes() -> list[ResourceDefinition]:
    claim = ClaimStrategy(
        default=volumes.default_persistent_volume_claim,
        status=True,
        initial_status={"phase": "Pending"},
        returns_deleted=True,
        validate=claims.validate,
        whole_update=claims.validate_update,
        warnings=volume_warnings.claim_warnings,
        revalidates_generate_name=True,
    )
    volume = VolumeStrategy(
        default=volumes.default_persistent_volume,
        status=True,
        initial_status={"phase": "Pending"},
        returns_deleted=True,
        validate=volumes_persistent.validate,
        whole_update=volumes_persistent.validate_update,
        warnings=volume_warnings.volume_warnings,
        revalidates_generate_name=True,
    )
    return [
        builtin(
            "",
            "persistentvolumeclaims",
            claim,
            table=storage_tables.PERSISTENT_VOLUME_CLAIMS,
            subresources={"status": ClaimStatusStrategy(claim, validate=claims.validate_status)},
        ),
        builtin(
            "", "persistentvolumes", volume, table=storage_tables.PERSISTENT_VOLUMES, subresources={"status": VolumeStatusStrategy(volume)}
        ),
    ]


def _pods(rests: Mapping[str, Rest | Strategy]) -> ResourceDefinition:
    pod = PodStrategy()
    paths = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize")
    return builtin(
        "",
        "pods",
        pod,
        table=pod_tables.PODS,
        subresources={**{path: rests[f"pods/{path}"] for path in paths}, "status": PodStatusStrategy(pod)},
    )


def _replication_controllers() -> ResourceDefinition:
    controller = KindStrategy(
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
    controller.garbage_collection_default = "Orphan"
    return builtin(
        "",
        "replicationcontrollers",
        controller,
        storage_prefix="controllers",
        table=pod_tables.REPLICATION_CONTROLLERS,
        subresources={"scale": scale(), "status": status_of(controller, validate=templates.validate_controller_status)},
    )


def _quotas() -> ResourceDefinition:
    quota = KindStrategy(
        default=cluster.default_resource_quota,
        status=True,
        returns_deleted=True,
        validate=quotas.validate,
        whole_update=quotas.validate_update,
        warnings=cluster_warnings.quota_warnings,
    )
    status = status_of(quota, validate=quotas.validate_status)
    return builtin("", "resourcequotas", quota, table=tables.RESOURCE_QUOTAS, subresources={"status": status})


def _services(rests: Mapping[str, Rest | Strategy], addresses: ClusterIPs, ports: NodePorts) -> ResourceDefinition:
    service = ServiceStrategy(addresses, ports)
    definition = builtin(
        "",
        "services",
        service,
        storage_prefix="services/specs",
        table=network_tables.SERVICES,
        subresources={"proxy": rests["services/proxy"], "status": ServiceStatusStrategy(service)},
    )
    return replace(definition, store=ServiceStore)
