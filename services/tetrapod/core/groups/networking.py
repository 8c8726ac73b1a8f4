"""Resource definitions of networking.k8s.io/v1 and discovery.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import networking as defaults
from tetrapod.core.strategies.simple import KindStrategy, status_of
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

GROUP = "networking.k8s.io"
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


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of both groups."""
    ingress = KindStrategy(
        validate=ingresses.validate,
        whole_update=ingresses.validate_update,
        warnings=warnings.ingress,
        status=True,
        initial_status={"loadBalancer": {}},
        generation=["spec"],
        revalidates_generate_name=True,
    )
    ingress_class = KindStrategy(
        default=defaults.default_ingress_class,
        validate=ingresses.validate_class,
        whole_update=ingresses.validate_class_update,
        revalidates_generate_name=True,
        generation=["spec"],
    )
    policy = NetworkPolicyStrategy(
        default=defaults.default_network_policy,
        validate=network_policies.validate,
        warnings=warnings.network_policy,
        whole_update=network_policies.validate_update,
        generation=["spec"],
    )
    cidr = KindStrategy(validate=service_networks.validate_cidrs, whole_update=service_networks.validate_cidrs_update, status=True)
    address = KindStrategy(
        validate=service_networks.validate_address,
        validate_update=service_networks.validate_address_update,
        name=service_networks.address_name,
        revalidates_generate_name=True,
    )
    return [
        builtin(GROUP, "ingressclasses", ingress_class, table=tables.INGRESS_CLASSES),
        builtin(
            GROUP,
            "ingresses",
            ingress,
            storage_prefix="ingress",
            table=tables.INGRESSES,
            subresources={"status": status_of(ingress, validate=ingresses.validate_status)},
        ),
        builtin(GROUP, "ipaddresses", address, table=tables.IP_ADDRESSES),
        builtin(GROUP, "networkpolicies", policy, table=tables.NETWORK_POLICIES),
        builtin(
            GROUP, "servicecidrs", cidr, table=tables.SERVICE_CIDRS, subresources={"status": status_of(cidr, keep_metadata=ALL_METADATA)}
        ),
        builtin(
            "discovery.k8s.io",
            "endpointslices",
            EndpointSliceStrategy(
                default=defaults.default_endpoint_slice,
                validate=endpoint_slices.validate,
                whole_update=endpoint_slices.validate,
                revalidates_generate_name=True,
                warnings=warnings.endpoint_slice,
                generation=["addressType", "endpoints", "ports"],
            ),
            table=tables.ENDPOINT_SLICES,
        ),
    ]
