"""`pods/proxy`, `services/proxy` and `nodes/proxy`. A service is proxied only to addresses that belong to its pods.

Upstream: pkg/registry/core/{pod,service,node}, ResourceLocation.
"""

from __future__ import annotations

import random

from tetrapod.core.subresources.locations import Backends, check_host, check_proxyable, endpoint_of, kubelet_of, proxy, split_name
from tetrapod.core.subresources.stores import NODES, PODS, SERVICES, SLICES, Stores
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Request, Response
from tetrapod.generic.storage.interface import ListQuery
from tetrapod.machinery import status
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object


class _ProxyRest(Rest):
    """The base of the three subresources."""

    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        return await proxy(self._backends.pool, await self.locate(ctx, name), request, path)

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        """Return the endpoint for a name with optional scheme and port, raising StatusError."""
        raise NotImplementedError


class PodProxyRest(_ProxyRest):
    """The subresource `pods/proxy`."""

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "pod")
        pod = (await self._stores[PODS].get(ctx, bare)).peek()
        address = next(iter(_addresses(pod)), "")
        check_proxyable(address)
        return endpoint_of(address, port or _first_port(pod), scheme)


def _addresses(pod: Object) -> list[str]:
    """Return the IP addresses of the pod."""
    pod_status = pod.get("status") or {}
    pod_ips = [entry.get("ip", "") for entry in pod_status.get("podIPs") or ()]
    return pod_ips or ([pod_status["podIP"]] if pod_status.get("podIP") else [])


def _first_port(pod: Object) -> str:
    """Return the first declared container port, or ""."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("ports"):
            return str(container["ports"][0].get("containerPort") or "")
    return ""


class ServiceProxyRest(_ProxyRest):
    """The subresource `services/proxy`."""

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "service")
        if port.lstrip("+-").isdecimal():
            port = _port_name((await self._stores[SERVICES].get(ctx, bare)).peek(), int(port))
        page = await self._stores[SLICES].list(Context(namespace=ctx.namespace), ListQuery(f"{ctx.namespace}/"))
        slices = [entry.peek() for entry in page.entries if _service_of(entry.peek()) == bare]
        random.shuffle(slices)
        slices.sort(key=lambda found: found.get("addressType") != "IPv4")
        for found in slices:
            for declared in found.get("ports") or ():
                if declared.get("name") == port and declared.get("port") and (address := await self._address(ctx, found)):
                    return endpoint_of(address, str(declared["port"]), scheme)
        raise status.service_unavailable(f"no endpoints available for service {go_quote(bare)}")

    async def _address(self, ctx: Context, found: Object) -> str:
        """Return a random ready address that belongs to the referenced pod, or ""."""
        endpoints = list(found.get("endpoints") or ())
        random.shuffle(endpoints)
        for endpoint in endpoints:
            reference = endpoint.get("targetRef") or {}
            if (endpoint.get("conditions") or {}).get("ready") is False or reference.get("namespace") != ctx.namespace:
                continue
            pod = await self._stores[PODS].storage.get(f"{ctx.namespace}/{reference.get('name')}")
            if pod is not None and endpoint["addresses"][0] in _addresses(pod.peek()):
                check_proxyable(endpoint["addresses"][0])
                return str(endpoint["addresses"][0])
        return ""


def _service_of(found: Object) -> str | None:
    name: str | None = (found["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
    return name


def _port_name(service: Object, number: int) -> str:
    """Return the name of the service port with this number, raising StatusError 503."""
    for port in (service.get("spec") or {}).get("ports") or ():
        if port.get("port") == number:
            return port.get("name") or ""
    name = service["metadata"]["name"]
    raise status.service_unavailable(f"no service port {number} found for service {go_quote(name)}")


class NodeProxyRest(_ProxyRest):
    """The subresource `nodes/proxy`."""

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "node")
        kubelet = await kubelet_of(self._stores, self._backends, bare, NODES)
        await check_host(kubelet.host)
        return kubelet if port in ("", str(kubelet.port)) else endpoint_of(kubelet.host, port, scheme)
