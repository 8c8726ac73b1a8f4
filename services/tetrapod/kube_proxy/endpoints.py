"""The endpoints of Services, as EndpointSlices list them.

Upstream: pkg/proxy/endpoint.go, pkg/proxy/endpointslicecache.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tetrapod.kube_proxy.families import parse_address
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePortName
from tetrapod.machinery.golang.ip_addresses import join_host_port
from tetrapod.machinery.gvk import Object

SERVICE_LABEL: Final = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and a port to which a Service sends traffic.

    Attributes:
        ip: the address.
        port: the port.
        is_local: whether it is on this node.
        ready: whether it is ready and not terminating, or published regardless.
        serving: whether it is ready, also if it is terminating.
        terminating: whether it is terminating.
        zones: the zones that should use it, by its hints; empty without hints.
        nodes: the nodes that should use it, by its hints; empty without hints.
    """

    ip: str
    port: int
    is_local: bool = False
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    zones: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return join_host_port(self.ip, self.port)

    @property
    def is_fallback(self) -> bool:
        """Whether it is used in place of missing ready endpoints: it terminates, but still serves."""
        return self.serving and self.terminating


Endpoints = dict[ServicePortName, list[Endpoint]]
"""The endpoints of each port of a Service, sorted by their text."""


def service_of(endpoint_slice: Object) -> ServiceName | None:
    """Return the Service of an EndpointSlice, or None if no label names one."""
    metadata = endpoint_slice["metadata"]
    name = (metadata.get("labels") or {}).get(SERVICE_LABEL)
    return ServiceName(metadata["namespace"], name) if name else None


def endpoints_of(service: ServiceName, slices: Iterable[Object], node: str) -> Endpoints:
    """Return the endpoints in the slices of a Service.

    Args:
        service: the Service.
        slices: its EndpointSlices of one address type.
        node: the name of this node.
    """
    by_port: dict[ServicePortName, dict[str, Endpoint]] = {}
    for endpoint_slice in slices:
        for port in endpoint_slice.get("ports") or ():
            if port.get("name") is None or not port.get("port"):
                continue
            name = ServicePortName(service, port["name"], port.get("protocol", "TCP"))
            endpoints = by_port.setdefault(name, {})
            for entry in endpoint_slice.get("endpoints") or ():
                endpoint = _endpoint(entry, port["port"], node)
                if endpoint is None:
                    continue
                # Two pods can have the same address while one of them terminates: the other one counts.
                if str(endpoint) not in endpoints or not endpoint.terminating:
                    endpoints[str(endpoint)] = endpoint
    return {name: [endpoints[key] for key in sorted(endpoints)] for name, endpoints in by_port.items() if endpoints}


def _endpoint(entry: Object, port: int, node: str) -> Endpoint | None:
    """Return an endpoint of a slice, or None if it has no address: other texts must not become a part of rules."""
    address = parse_address(next(iter(entry.get("addresses") or ()), ""))
    if address is None:
        return None
    conditions = entry.get("conditions") or {}
    hints = entry.get("hints") or {}
    return Endpoint(
        str(address),
        port,
        is_local=bool(node) and entry.get("nodeName") == node,
        ready=conditions.get("ready") is not False,
        serving=conditions.get("serving") is not False,
        terminating=conditions.get("terminating") is True,
        zones=frozenset(zone["name"] for zone in hints.get("forZones") or ()),
        nodes=frozenset(hint["name"] for hint in hints.get("forNodes") or ()),
    )


def local_ready_counts(endpoints: Endpoints) -> dict[ServiceName, int]:
    """Return the number of addresses on this node with a ready endpoint, for each Service that has any."""
    addresses: dict[ServiceName, set[str]] = {}
    for name, listed in endpoints.items():
        for endpoint in listed:
            if endpoint.ready and endpoint.is_local:
                addresses.setdefault(name.service, set()).add(endpoint.ip)
    return {service: len(found) for service, found in addresses.items()}
