"""The ports of Services: for each port of a Service, the values that its rules depend on.

Upstream: pkg/proxy/serviceport.go
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NamedTuple

from tetrapod.kube_proxy.families import Family, addresses_of, family_of, networks_of, parse_address
from tetrapod.machinery.golang.ip_addresses import Network
from tetrapod.machinery.gvk import Object

_LOCAL: Final = "Local"
_CLIENT_IP: Final = "ClientIP"
_HEADLESS: Final = ("", "None")


class ServiceName(NamedTuple):
    """The namespace and the name of a Service."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ServicePortName(NamedTuple):
    """The identity of a port of a Service.

    Attributes:
        service: the Service.
        port: the name of the port; "" for the only port of a Service.
        protocol: TCP, UDP or SCTP.
    """

    service: ServiceName
    port: str
    protocol: str

    def __str__(self) -> str:
        return f"{self.service}:{self.port}" if self.port else str(self.service)


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service in one IP family.

    Attributes:
        name: its identity.
        cluster_ip: the cluster IP of the family.
        port: the number of the port.
        node_port: the port on the nodes; 0 for none.
        external_ips: the external IPs of the family.
        load_balancer_ips: the addresses of the family at which a load balancer passes packets on unchanged.
        source_ranges: the networks that may use the load balancer; empty for all.
        affinity_seconds: the seconds for which a client keeps its endpoint; None without session affinity.
        health_check_node_port: the port at which load balancers ask whether the node has endpoints; 0 for none.
        external_policy_local: whether traffic from outside is only sent to endpoints of this node.
        internal_policy_local: whether traffic to the cluster IP is only sent to endpoints of this node.
    """

    name: ServicePortName
    cluster_ip: str
    port: int
    node_port: int = 0
    external_ips: tuple[str, ...] = ()
    load_balancer_ips: tuple[str, ...] = ()
    source_ranges: tuple[Network, ...] = ()
    affinity_seconds: int | None = None
    health_check_node_port: int = 0
    external_policy_local: bool = False
    internal_policy_local: bool = False

    @property
    def protocol(self) -> str:
        """The protocol in lower case, as iptables names it."""
        return self.name.protocol.lower()

    @property
    def externally_accessible(self) -> bool:
        """Whether the port can be reached by other means than its cluster IP."""
        return bool(self.node_port or self.load_balancer_ips or self.external_ips)

    @property
    def uses_cluster_endpoints(self) -> bool:
        """Whether traffic is ever sent to endpoints of all nodes.

        It is if the port is externally accessible, also with the external policy Local: traffic from the node itself
        and from its pods is subject to no policy.
        """
        return not self.internal_policy_local or self.externally_accessible

    @property
    def uses_local_endpoints(self) -> bool:
        """Whether traffic is ever only sent to endpoints of this node."""
        return self.internal_policy_local or (self.external_policy_local and self.externally_accessible)


ServicePorts = dict[ServicePortName, ServicePort]


def name_of(service: Object) -> ServiceName:
    """Return the name of a Service."""
    metadata = service["metadata"]
    return ServiceName(metadata["namespace"], metadata["name"])


def ports_of(service: Object | None, family: Family) -> ServicePorts:
    """Return the ports of a Service in one IP family; none for a Service that is not proxied, and for None."""
    if service is None:
        return {}
    spec = service["spec"]
    cluster_ip = _cluster_ip(spec, family)
    if spec.get("clusterIP", "") in _HEADLESS or spec.get("type") == "ExternalName" or not cluster_ip:
        return {}
    name = name_of(service)
    shared = _values_of_all_ports(service, family)
    ports: ServicePorts = {}
    for port in spec.get("ports") or ():
        identity = ServicePortName(name, port.get("name", ""), port.get("protocol", "TCP"))
        ports[identity] = ServicePort(identity, cluster_ip, port["port"], port.get("nodePort", 0), **shared)
    return ports


def _values_of_all_ports(service: Object, family: Family) -> Object:
    """Return the attributes that all ports of a Service share, by name."""
    spec = service["spec"]
    external_local = _is_external(spec) and spec.get("externalTrafficPolicy") == _LOCAL
    affinity = spec.get("sessionAffinity") == _CLIENT_IP
    return {
        "external_ips": addresses_of(family, spec.get("externalIPs") or ()),
        "load_balancer_ips": _load_balancer_ips(service, family),
        "source_ranges": _source_ranges(spec, family),
        "affinity_seconds": spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] if affinity else None,
        "health_check_node_port": (
            spec.get("healthCheckNodePort", 0) if external_local and spec.get("type") == "LoadBalancer" else 0
        ),
        "external_policy_local": external_local,
        "internal_policy_local": spec.get("internalTrafficPolicy") == _LOCAL,
    }


def _cluster_ip(spec: Object, family: Family) -> str:
    """Return the cluster IP of a family in its canonical form, or "" if the Service has none.

    A Service without a list of families, which old API servers return, only has the field clusterIP.
    """
    families = spec.get("ipFamilies") or ()
    addresses = spec.get("clusterIPs") or () if families else (spec.get("clusterIP", ""),)
    for declared, address in zip_longest(families, addresses):
        parsed = parse_address(address or "")
        if parsed is not None and (declared or family_of(parsed).value) == family.value:
            return str(parsed)
    return ""


def _is_external(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _source_ranges(spec: Object, family: Family) -> tuple[Network, ...]:
    """Return the networks that may use the load balancer; none if one of them has all addresses of the family."""
    networks = networks_of(family, spec.get("loadBalancerSourceRanges") or ())
    return () if any(network.prefixlen == 0 for network in networks) else networks


def _load_balancer_ips(service: Object, family: Family) -> tuple[str, ...]:
    """Return the addresses of the load balancer whose packets arrive with these addresses (ipMode VIP)."""
    addresses = []
    for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
        address = parse_address(ingress.get("ip", ""))
        if address is not None and ingress.get("ipMode", "VIP") == "VIP" and family_of(address) is family:
            addresses.append(str(address))
    return tuple(addresses)
