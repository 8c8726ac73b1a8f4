"""Where a request for a pod, service or node goes to, and how it is passed on.

Upstream: pkg/kubelet/client/kubelet_client.go (NodeConnectionInfoGetter), k8s.io/apimachinery/pkg/util/proxy/{upgradeaware,transport}.go,
k8s.io/apimachinery/pkg/util/net/port_split.go.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from tetrapod.core.rests.links import Links
from tetrapod.core.rests.stores import NODES, PODS, Stores
from tetrapod.generic.client.inprocess import QueueWriter
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint, NotUpgraded, forward
from tetrapod.generic.proxy.headers import SITES, passed_headers, upgrade_of, where_from
from tetrapod.generic.registry.context import Context
from tetrapod.generic.request import Request, Response, StreamResponse
from tetrapod.machinery import status
from tetrapod.machinery.gvk import GroupResource, Object

KUBELET_PORT: Final = 10250
_SAFE: Final = "/:@!$&'()*+,;=~-._"


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """`tls`: whom to believe, and who we are. Without a CA any certificate is believed, as upstream does."""

    tls: ClientTLS
    preferred_addresses: Sequence[str] = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


UNVERIFIED: Final = KubeletConfig(ClientTLS(insecure=True))


class Backends:
    """The connections to kubelets, pods and services, and how kubelets are reached."""

    def __init__(self, pool: BackendPool, kubelet: KubeletConfig) -> None:
        self.pool = pool
        self.kubelet = kubelet


async def node_status(stores: Stores, node: str, asked: GroupResource = PODS) -> Object:
    """Raises StatusError 404 where the node is gone: one of the resource that was asked for (upstream: qualifiedResourceFromContext)."""
    try:
        found: Object = (await stores[NODES].get(Context(), node)).peek()
    except status.StatusError as error:
        raise status.not_found(asked, node) if error.reason == "NotFound" else error from None
    return found.get("status") or {}


def kubelet_at(found: Object, backends: Backends, *, verify: bool = True) -> Endpoint:
    """Where the kubelet of a node with this status is.

    Raises:
        StatusError: 500, the node has no address of a preferred type.
    """
    listed = found.get("addresses") or ()
    for kind in backends.kubelet.preferred_addresses:
        for address in listed:
            if address.get("type") == kind:
                port = ((found.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
                tls = backends.kubelet.tls if verify else replace(backends.kubelet.tls, insecure=True)
                return Endpoint(address.get("address", ""), port or KUBELET_PORT, tls)
    shown = " ".join(f"{{{a.get('type')} {a.get('address')}}}" for a in listed)
    raise status.StatusError(500, "", f"no preferred addresses found; known addresses: [{shown}]")


async def kubelet_of(stores: Stores, backends: Backends, node: str, asked: GroupResource = PODS, *, verify: bool = True) -> Endpoint:
    return kubelet_at(await node_status(stores, node, asked), backends, verify=verify)


def split_name(name: str, kind: str) -> tuple[str, str, str]:
    """Scheme, name and port of `[scheme:]name[:port]`."""
    parts = name.split(":")
    scheme, bare, port = {1: ("", name, ""), 2: ("", parts[0], parts[-1])}.get(len(parts), (*parts, "", "")[:3])
    if len(parts) > 3 or not bare or scheme not in ("", "http", "https"):
        raise status.bad_request(f'invalid {kind} request "{name}"')
    return scheme, bare, port


def endpoint_of(host: str, port: str, scheme: str) -> Endpoint:
    """Upstream believes any certificate here: there is no telling whose it should be."""
    tls = ClientTLS(insecure=True) if scheme == "https" else None
    if not port:
        return Endpoint(host, 443 if tls else 80, tls)
    if not port.isdecimal() or int(port) > 65535:
        raise unreachable(f"dial tcp: lookup tcp/{port}: unknown port")
    return Endpoint(host, int(port), tls)


def check_proxyable(address: str) -> None:
    """Raises StatusError 400 for what is no global unicast address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        raise status.bad_request("address not allowed") from None
    limited = found == ipaddress.IPv4Address("255.255.255.255")
    if limited or found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
        raise status.bad_request("address not allowed")


async def check_host(host: str) -> None:
    """The same of whatever a name means.

    Raises:
        StatusError: 400, it means nothing, or something that is not allowed.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        raise status.bad_request(f"lookup {host}: no such host") from None
    for *_, address in found:
        check_proxyable(str(address[0]).partition("%")[0])


def unreachable(why: object) -> status.StatusError:
    return status.service_unavailable(f"error trying to reach service: {why}")


async def proxy(pool: BackendPool, endpoint: Endpoint, request: Request, path: str) -> Response:
    """`path` is what follows `proxy` in the request's."""
    query = f"?{request.query_string}" if request.query_string else ""
    if path and request.path.endswith("/") and not path.endswith("/"):
        path += "/"
    asks_root = not path and not request.path.endswith("/")
    upgrade = upgrade_of(request.headers)
    if asks_root and not upgrade and request.method in ("GET", "HEAD"):
        return Response(301, [(b"location", f"{request.raw_path}/{query}".encode("latin-1"))])
    escaped = quote(path or "/", safe=_SAFE)
    prefix = quote(request.path.removesuffix(path or "/"), safe=_SAFE)
    uri = where_from(escaped, prefix).encode("latin-1")
    headers = [*passed_headers(request.headers, request.remote, ""), (b"x-forwarded-uri", uri)]
    target = escaped + query
    host = next((value for name, value in request.headers if name == b"host"), b"").decode("latin-1")
    try:
        response = await forward(pool, endpoint, request, target=target, headers=headers, host=host, only_upgraded=True, dropped=SITES)
        return await _led_back(response, request, Links(prefix, endpoint.authority, host))
    except BackendError as error:
        if upgrade:
            raise not_upgraded(error) from None
        raise unreachable(error) from None


async def _led_back(response: Response, request: Request, links: Links) -> Response:
    """Redirects and pages lead back through the proxy."""
    found = dict(response.headers)
    if location := found.get(b"location"):
        moved = links.rewrite(location.decode("latin-1")).encode("latin-1")
        response.headers = [(name, moved if name == b"location" else value) for name, value in response.headers]
        return response
    if found.get(b"content-type", b"").partition(b";")[0].strip() != b"text/html" or request.method == "HEAD":
        return response
    encoding = found.get(b"content-encoding", b"").decode("latin-1")
    if encoding not in ("", "gzip", "deflate"):
        return response
    body = response.body
    if isinstance(response, StreamResponse):
        writer = QueueWriter()
        await response.run(writer)
        body = b"".join(writer.chunks)
    try:
        page = links.page(body, encoding)
    except ValueError as error:
        raise unreachable(error) from None
    kept = [(name, value) for name, value in response.headers if name != b"content-length"]
    return Response(response.status, kept, page if page is not None else body)


def not_upgraded(error: BackendError) -> status.StatusError:
    return status.StatusError(500, "", str(error) if isinstance(error, NotUpgraded) else f"error dialing backend: {error}")


def node_name(pod: Object) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""
