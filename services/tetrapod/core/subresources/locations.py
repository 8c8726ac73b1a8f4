"""The backends of requests to pods, services, nodes and kubelets.

The module computes their endpoints and rejects addresses that a proxied request must not reach.

Upstream: pkg/kubelet/client/kubelet_client.go (NodeConnectionInfoGetter),
k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, k8s.io/apimachinery/pkg/util/net/port_split.go.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tetrapod.core.subresources.stores import NODES, PODS, Stores
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint, NotUpgraded
from tetrapod.generic.registry.context import Context
from tetrapod.machinery import status
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import GroupResource, Object

KUBELET_PORT: Final = 10250


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """The settings of connections to kubelets.

    Attributes:
        tls: the trusted CA and the client certificate. Without a CA, any certificate is accepted, as upstream does.
        preferred_addresses: types of node addresses, in order of preference.
    """

    tls: ClientTLS
    preferred_addresses: Sequence[str] = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


UNVERIFIED: Final = KubeletConfig(ClientTLS(insecure=True))


class Backends:
    """The connection pool for kubelets, pods and services, and the settings of connections to kubelets.

    Attributes:
        pool: the connection pool, which the owner closes.
        kubelet: the settings of connections to kubelets.
    """

    def __init__(self, pool: BackendPool, kubelet: KubeletConfig) -> None:
        self.pool = pool
        self.kubelet = kubelet


async def node_status(stores: Stores, node: str, requested_resource: GroupResource = PODS) -> Object:
    """Read the node and return its status, or {} if it has none.

    Args:
        stores: the stores by resource, among them that of nodes.
        node: the name of the node.
        requested_resource: the resource of the request, which the error names (qualifiedResourceFromContext).

    Raises:
        StatusError: 404, the node does not exist.
    """
    try:
        stored: Object = (await stores[NODES].get(Context(), node)).peek()
    except status.StatusError as error:
        raise status.not_found(requested_resource, node) if error.reason == "NotFound" else error from None
    return stored.get("status") or {}


def kubelet_at(reported_status: Object, backends: Backends, *, verify: bool = True) -> Endpoint:
    """Return the endpoint of a node's kubelet: its first address of the most preferred type, and its port.

    Args:
        reported_status: the status of the Node.
        verify: whether to verify the kubelet's certificate.

    Raises:
        StatusError: 500, the node has no address of a preferred type.
    """
    addresses = reported_status.get("addresses") or ()
    for address_type in backends.kubelet.preferred_addresses:
        for address in addresses:
            if address.get("type") == address_type:
                port = ((reported_status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
                tls = backends.kubelet.tls if verify else replace(backends.kubelet.tls, insecure=True)
                return Endpoint(address.get("address", ""), port or KUBELET_PORT, tls)
    listed_addresses = " ".join(f"{{{a.get('type')} {a.get('address')}}}" for a in addresses)
    raise status.StatusError(500, "", f"no preferred addresses found; known addresses: [{listed_addresses}]")


async def kubelet_of(
    stores: Stores, backends: Backends, node: str, requested_resource: GroupResource = PODS, *, verify: bool = True
) -> Endpoint:
    """Read the node and return the endpoint of its kubelet: its first address of the most preferred type, and its port.

    Args:
        stores: the stores by resource, among them that of nodes.
        backends: has the preferred types of addresses, and the TLS configuration for kubelets.
        node: the name of the node.
        requested_resource: the resource of the request, which errors name.
        verify: whether to verify the kubelet's certificate.

    Raises:
        StatusError: 404, the node does not exist; 500, it has no address of a preferred type.
    """
    return kubelet_at(await node_status(stores, node, requested_resource), backends, verify=verify)


def split_name(name: str, kind: str) -> tuple[str, str, str]:
    """Split `[scheme:]name[:port]` into scheme, name and port, with "" for missing parts.

    Args:
        kind: the kind of object, for the error.

    Raises:
        StatusError: 400, the name has another form.
    """
    parts = name.split(":")
    scheme, bare, port = {1: ("", name, ""), 2: ("", parts[0], parts[-1])}.get(len(parts), (*parts, "", "")[:3])
    if len(parts) > 3 or not bare or scheme not in ("", "http", "https"):
        raise status.bad_request(f'invalid {kind} request "{name}"')
    return scheme, bare, port


def endpoint_of(host: str, port: str, scheme: str) -> Endpoint:
    """Return the endpoint for a host, a port and a scheme ("" for http). A missing port is 80, or 443 for https.

    As upstream, any certificate is accepted for https, because no expected name is known.

    Raises:
        StatusError: 503, the port is not a number from 0 to 65535.
    """
    tls = ClientTLS(insecure=True) if scheme == "https" else None
    if not port:
        return Endpoint(host, 443 if tls else 80, tls)
    try:
        number = parse_uint(port, 16)
    except ValueError:
        raise unreachable(f"dial tcp: lookup tcp/{port}: unknown port") from None
    return Endpoint(host, number, tls)


def check_proxyable(address: str) -> None:
    """Check that the address is a global unicast address. Private addresses are allowed.

    Raises:
        StatusError: 400, `address` is not an IP address, or not a global unicast address.
    """
    parsed = parse_sloppy(address)
    if parsed is None:
        raise status.bad_request("address not allowed")
    is_broadcast = parsed == ipaddress.IPv4Address("255.255.255.255")
    if is_broadcast or parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast:
        raise status.bad_request("address not allowed")


async def check_host(host: str) -> None:
    """Resolve a host name and check all its addresses by `check_proxyable`.

    Raises:
        StatusError: 400, the name does not resolve, or an address is not allowed.
    """
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # UnicodeError: a label of the name is empty or too long
        raise status.bad_request(f"lookup {host}: no such host") from None
    for *_, address in resolved:
        check_proxyable(str(address[0]).partition("%")[0])


def unreachable(why: object) -> status.StatusError:
    """Return the error 503 with the reason why a backend cannot be reached."""
    return status.service_unavailable(f"error trying to reach service: {why}")


def not_upgraded(error: BackendError) -> status.StatusError:
    """Return the error 500 for an upgrade request that the backend rejected or could not receive."""
    return status.StatusError(
        500, "", str(error) if isinstance(error, NotUpgraded) else f"error dialing backend: {error}"
    )


def node_name(pod: Object) -> str:
    """Return the name of the node that the pod is assigned to, or ""."""
    return (pod.get("spec") or {}).get("nodeName") or ""
