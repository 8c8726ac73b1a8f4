"""Services and EndpointSlices for the tests of the proxy, as the API returns them."""

from __future__ import annotations

from typing import Any

from tetrapod.kube_proxy.endpoints import Endpoint, endpoints_of
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePort, ports_of

NODE = "node1"


def service(namespace: str, name: str, address: str, port: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a Service with one port and one IPv4 address."""
    ingress = spec.pop("ingress", [])
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ports": [{"protocol": "TCP", **port}],
            **spec,
        },
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def endpoint_slice(namespace: str, name: str, port: dict[str, Any], *endpoints: dict[str, Any]) -> dict[str, Any]:
    """Return an EndpointSlice of a Service with that name."""
    return {
        "metadata": {
            "namespace": namespace,
            "name": f"{name}-1",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"protocol": "TCP", **port}],
        "endpoints": list(endpoints),
    }


def at(address: str, node: str = "", **conditions: bool) -> dict[str, Any]:
    """Return an endpoint of a slice."""
    endpoint: dict[str, Any] = {"addresses": [address], "conditions": conditions}
    return {**endpoint, "nodeName": node} if node else endpoint


def only_port(obj: dict[str, Any], family: Family = Family.IPV4) -> ServicePort:
    """Return the only port of a Service."""
    (port,) = ports_of(obj, family).values()
    return port


def only_endpoints(obj: dict[str, Any]) -> list[Endpoint]:
    """Return the endpoints of the only port of an EndpointSlice."""
    metadata = obj["metadata"]
    owner = ServiceName(metadata["namespace"], metadata["labels"]["kubernetes.io/service-name"])
    (endpoints,) = endpoints_of(owner, [obj], NODE).values()
    return endpoints
