"""`pods/proxy`, `services/proxy` and `nodes/proxy`: requests passed on to what runs in the cluster.

Upstream: ResourceLocation of pkg/registry/core/{pod,service,node}; a service leads only to addresses that are those of its pods.
"""

from __future__ import annotations

import random

from tetrapod.core.rests.locations import Backends, check_proxyable, endpoint_of, kubelet_of, proxy, split_name
from tetrapod.core.rests.stores import ENDPOINTS, PODS, SERVICES, Stores
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Request, Response
from tetrapod.machinery import field, status
from tetrapod.machinery.gvk import Object


class _ProxyRest(Rest):
    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        return await proxy(self._backends.pool, await self.locate(ctx, name), request, path)

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        raise NotImplementedError


class PodProxyRest(_ProxyRest):
    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "pod")
        pod = (await self._stores[PODS].get(ctx, bare)).peek()
        address = next(iter(_addresses(pod)), "")
        check_proxyable(address)
        return endpoint_of(address, port or _first_port(pod), scheme)


def _addresses(pod: Object) -> list[str]:
    found = pod.get("status") or {}
    listed = [entry.get("ip", "") for entry in found.get("podIPs") or ()]
    return listed or ([found["podIP"]] if found.get("podIP") else [])


def _first_port(pod: Object) -> str:
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("ports"):
            return str(container["ports"][0].get("containerPort") or "")
    return ""


class ServiceProxyRest(_ProxyRest):
    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "service")
        if port.isdecimal():
            port = _port_name((await self._stores[SERVICES].get(ctx, bare)).peek(), int(port))
        subsets = list((await self._stores[ENDPOINTS].get(ctx, bare)).peek().get("subsets") or ())
        if not subsets:
            raise status.service_unavailable(f"no endpoints available for service {field.go_quote(bare)}")
        random.shuffle(subsets)
        for subset in subsets:
            for declared in subset.get("ports") or ():
                if (declared.get("name") or "") == port:
                    address = await self._address(ctx, subset)
                    if address:
                        return endpoint_of(address, str(declared.get("port")), scheme)
        raise status.service_unavailable(f"no endpoints available for service {field.go_quote(name)}")

    async def _address(self, ctx: Context, subset: Object) -> str:
        """One of those that a pod really has."""
        listed = list(subset.get("addresses") or ())
        random.shuffle(listed)
        for address in listed:
            reference = address.get("targetRef") or {}
            if reference.get("kind", "Pod") != "Pod" or not reference.get("name"):
                continue
            namespace = reference.get("namespace") or ctx.namespace
            if namespace != ctx.namespace:
                continue
            pod = await self._stores[PODS].storage.get(f"{namespace}/{reference['name']}")
            if pod is not None and address.get("ip") in _addresses(pod.peek()):
                check_proxyable(str(address["ip"]))
                return str(address["ip"])
        return ""


def _port_name(service: Object, number: int) -> str:
    for port in (service.get("spec") or {}).get("ports") or ():
        if port.get("port") == number:
            return port.get("name") or ""
    name = service["metadata"]["name"]
    raise status.bad_request(f"no service port {number} found for service {field.go_quote(name)}")


class NodeProxyRest(_ProxyRest):
    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "node")
        kubelet = await kubelet_of(self._stores, self._backends, bare)
        if port in ("", str(kubelet.port)):
            return kubelet
        check_proxyable(kubelet.host)
        return endpoint_of(kubelet.host, port, scheme)
