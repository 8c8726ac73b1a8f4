"""Resource definitions of networking.k8s.io/v1 and discovery.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import networking as defaults
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.tables import networking as tables
from tetrapod.core.validation import endpoint_slices, ingresses, network_policies, service_networks
from tetrapod.core.warnings import others as warnings
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA
from tetrapod.machinery.equality import same
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

_HOST_NAME = "kubernetes.io/hostname"


class EndpointSliceStrategy(KindStrategy):
    """The strategy of EndpointSlice: a change of labels increments the generation too; deprecatedTopology is dropped."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _drop_topology(obj, frozenset())

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        old_endpoints = old.get("endpoints") or ()
        if not same(new.get("endpoints"), old_endpoints or None):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1  # even if the changed fields are dropped
            _drop_topology(new, frozenset((e.get("deprecatedTopology") or {}).get(_HOST_NAME, "") for e in old_endpoints))

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("labels") != old["metadata"].get("labels")


class NetworkPolicyStrategy(KindStrategy):
    """The strategy of NetworkPolicy."""

    distinguishes_empty = True


def _drop_topology(obj: Object, known_nodes: frozenset[str]) -> None:
    """Drop deprecatedTopology. Upstream: dropTopologyOnV1.

    A valid hostname in it becomes nodeName if nodeName is unset and the stored slice had that hostname.
    """
    for endpoint in obj.get("endpoints") or ():
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOST_NAME, "")
        if endpoint.get("nodeName") is None and node in known_nodes and not is_dns1123_subdomain(node):
            endpoint["nodeName"] = node


def ingress_classes() -> ResourceDefinition:
    """Return the definition of IngressClasses."""
    strategy = KindStrategy(
        default=defaults.default_ingress_class,
        validate=ingresses.validate_class,
        whole_update=ingresses.validate_class_update,
        revalidates_generate_name=True,
        generation=["spec"],
    )
    return builtin("networking.k8s.io", "ingressclasses", strategy, table=tables.INGRESS_CLASSES)


def ingress_definition() -> ResourceDefinition:
    """Return the definition of Ingresses."""
    strategy = KindStrategy(
        validate=ingresses.validate,
        whole_update=ingresses.validate_update,
        warnings=warnings.ingress,
        status=True,
        initial_status={"loadBalancer": {}},
        generation=["spec"],
        revalidates_generate_name=True,
    )
    return builtin(
        "networking.k8s.io",
        "ingresses",
        strategy,
        storage_prefix="ingress",
        table=tables.INGRESSES,
        subresources={"status": status_strategy(strategy, validate=ingresses.validate_status)},
    )


def ip_addresses() -> ResourceDefinition:
    """Return the definition of IPAddresses."""
    strategy = KindStrategy(
        validate=service_networks.validate_address,
        validate_update=service_networks.validate_address_update,
        name=service_networks.address_name,
        revalidates_generate_name=True,
    )
    return builtin("networking.k8s.io", "ipaddresses", strategy, table=tables.IP_ADDRESSES)


def network_policy_definition() -> ResourceDefinition:
    """Return the definition of NetworkPolicies."""
    strategy = NetworkPolicyStrategy(
        default=defaults.default_network_policy,
        validate=network_policies.validate,
        warnings=warnings.network_policy,
        whole_update=network_policies.validate_update,
        generation=["spec"],
    )
    return builtin("networking.k8s.io", "networkpolicies", strategy, table=tables.NETWORK_POLICIES)


def service_cidrs() -> ResourceDefinition:
    """Return the definition of ServiceCIDRs."""
    strategy = KindStrategy(validate=service_networks.validate_cidrs, whole_update=service_networks.validate_cidrs_update, status=True)
    status = status_strategy(strategy, keep_metadata=ALL_METADATA)
    return builtin("networking.k8s.io", "servicecidrs", strategy, table=tables.SERVICE_CIDRS, subresources={"status": status})


def endpoint_slice_definition() -> ResourceDefinition:
    """Return the definition of EndpointSlices."""
    strategy = EndpointSliceStrategy(
        default=defaults.default_endpoint_slice,
        validate=endpoint_slices.validate,
        whole_update=endpoint_slices.validate,
        revalidates_generate_name=True,
        warnings=warnings.endpoint_slice,
        generation=["addressType", "endpoints", "ports"],
    )
    return builtin("discovery.k8s.io", "endpointslices", strategy, table=tables.ENDPOINT_SLICES)


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [
        ingress_classes(),
        ingress_definition(),
        ip_addresses(),
        network_policy_definition(),
        service_cidrs(),
    ]


def discovery_definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [endpoint_slice_definition()]
