"""Resolution of a Service to an address.

The address is the Service's ClusterIP or ExternalName, or, with endpoint routing, one of its ready endpoints.

Upstream: k8s.io/apiserver/pkg/util/proxy/proxy.go.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Protocol

from tetrapod.machinery.gvk import Object

SERVICE_NAME = "kubernetes.io/service-name"


class Unresolvable(Exception):
    """The error of a Service that does not exist or has no usable address. The text is upstream's."""


class Cluster(Protocol):
    """A source of Services and EndpointSlices, such as informers.

    `service` returns the Service with this name, or None if it does not exist. `endpoint_slices` returns the
    EndpointSlices of the Service with this name.
    """

    def service(self, namespace: str, name: str) -> Object | None: ...
    def endpoint_slices(self, namespace: str, name: str) -> list[Object]: ...


class Resolver:
    """A resolver of Services over informers, for the aggregator. Webhooks read the storage instead.

    Args:
        cluster: the Services and EndpointSlices.
        by_endpoints: whether to use a ready endpoint instead of the ClusterIP (--enable-aggregator-routing).
    """

    def __init__(self, cluster: Cluster, *, by_endpoints: bool) -> None:
        self._cluster = cluster
        self._by_endpoints = by_endpoints

    def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Return the host and port at which a port of a Service can be reached.

        Raises:
            Unresolvable: the Service does not exist or has no usable address.
        """
        service = require_service(self._cluster.service(namespace, name), name)
        if not self._by_endpoints:
            return cluster_ip(service, name, port)
        port_name = endpoint_port(service, name, port)
        return endpoint(self._cluster.endpoint_slices(namespace, name), service, port_name)


def require_service(service: Object | None, name: str) -> Object:
    """Return the Service, or raise Unresolvable if it is None. `name` is for the error."""
    if service is None:
        raise Unresolvable(f'service "{name}" not found')
    return service


def endpoint_port(service: Object, name: str, port: int) -> str:
    """Return the name of the Service port with this number, by which EndpointSlices refer to it; "" for an unnamed one.

    Args:
        service: the Service.
        name: its name, for the error text.
        port: the number of the port.

    Raises:
        Unresolvable: the Service has no such port, or a type without endpoints.
    """
    kind = service["spec"].get("type", "ClusterIP")
    if kind not in ("ClusterIP", "LoadBalancer", "NodePort"):
        raise Unresolvable(f'unsupported service type "{kind}"')
    named: str = service_port(service, name, port).get("name", "")
    return named


def endpoint(slices: Iterable[Object], service: Object, port_name: str) -> tuple[str, int]:
    """Return the address and port of a random ready endpoint, preferably of the Service's first IP family.

    Args:
        slices: the EndpointSlices of the Service.
        service: the Service.
        port_name: the name of the port in the EndpointSlices; "" for an unnamed one.

    Raises:
        Unresolvable: no endpoint is ready.
    """
    family = next(iter(service["spec"].get("ipFamilies") or ()), "")
    by_type: dict[bool, list[Object]] = {True: [], False: []}
    for endpoint_slice in slices:
        by_type[endpoint_slice.get("addressType") == family].append(endpoint_slice)
    for preferred in (True, False):
        if ready := list(ready_addresses(by_type[preferred], port_name)):
            return random.choice(ready)
    raise Unresolvable(f'no endpoints available for service "{service["metadata"]["name"]}"')


def cluster_ip(service: Object, name: str, port: int) -> tuple[str, int]:
    """Return the ClusterIP of a Service, or the externalName of an ExternalName Service, and the port.

    Args:
        service: the Service.
        name: its name, for the error text.
        port: the number of the port.

    Raises:
        Unresolvable: the Service is headless, has an unknown type, or does not have this port.
    """
    spec = service["spec"]
    kind = spec.get("type", "ClusterIP")
    if kind == "ExternalName":
        return spec.get("externalName", ""), port
    if kind not in ("ClusterIP", "LoadBalancer", "NodePort"):
        raise Unresolvable(f'unsupported service type "{kind}"')
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        raise Unresolvable('cannot route to service with ClusterIP "None"')
    return spec.get("clusterIP", ""), service_port(service, name, port)["port"]


def service_port(service: Object, name: str, port: int) -> Object:
    """Return a copy of the entry with this port number in spec.ports of a Service.

    Args:
        service: the Service.
        name: its name, for the error text.
        port: the number of the port.

    Raises:
        Unresolvable: the Service does not have this port.
    """
    for entry in service["spec"].get("ports") or []:
        if entry.get("port") == port:
            return dict(entry)
    raise Unresolvable(f'no service port {port} found for service "{name}"')


def ready_addresses(slices: Iterable[Object], port_name: str) -> Iterator[tuple[str, int]]:
    """Yield (address, port number) for each ready endpoint in EndpointSlices, with the first address of the endpoint.

    An endpoint whose condition `ready` is missing counts as ready.

    Args:
        slices: the EndpointSlices.
        port_name: the name of the port in them; slices without this port are skipped.
    """
    for endpoint_slice in slices:
        for port in endpoint_slice.get("ports") or []:
            if (port.get("name") or "") != port_name or port.get("port") is None:
                continue
            for endpoint in endpoint_slice.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    yield endpoint["addresses"][0], port["port"]
