"""`services/proxy`, which forwards only to addresses that belong to pods of the Service.

Upstream: pkg/registry/core/service/storage/storage.go, ResourceLocation.
"""

from __future__ import annotations

import random

from tetrapod.core.subresources.locations import Backends, check_proxyable, endpoint_of, split_name
from tetrapod.core.subresources.proxy import ProxyRest
from tetrapod.core.subresources.stores import PODS, SERVICES, SLICES, Stores
from tetrapod.core.v1.pods.proxy import pod_addresses
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery import status
from tetrapod.machinery.golang.integers import parse_int
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object


class ServiceProxyRest(ProxyRest):
    """The subresource `services/proxy`, which forwards requests to a ready endpoint of the Service.

    The endpoint is chosen at random, those of the cluster's default IP family first, among those whose address belongs
    to the pod that they reference.

    Args:
        stores: the stores by resource, to look up the objects.
        backends: the connection pool.
        family: the default IP family of the cluster, "IPv4" or "IPv6".
    """

    def __init__(self, stores: Stores, backends: Backends, family: str) -> None:
        super().__init__(stores, backends)
        self._family = family

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "service")
        if (number := _number(port)) is not None:
            port = _port_name((await self._stores[SERVICES].get(ctx, bare)).peek(), number)
        page = await self._stores[SLICES].list(Context(namespace=ctx.namespace), ListQuery(f"{ctx.namespace}/"))
        slices = [entry.peek() for entry in page.entries if _service_of(entry.peek()) == bare]
        random.shuffle(slices)
        slices.sort(key=lambda endpoint_slice: endpoint_slice.get("addressType") != self._family)
        for endpoint_slice in slices:
            for declared in endpoint_slice.get("ports") or ():
                if (
                    declared.get("name") == port
                    and declared.get("port")
                    and (address := await self._address(ctx, endpoint_slice))
                ):
                    return endpoint_of(address, str(declared["port"]), scheme)
        raise status.service_unavailable(f"no endpoints available for service {go_quote(bare)}")

    async def _address(self, ctx: Context, endpoint_slice: Object) -> str:
        """Return a random ready address of the slice that belongs to the pod of its targetRef, or "".

        Endpoints whose readiness is unknown count as ready.

        Raises:
            StatusError: 400, proxying to the address is not allowed.
        """
        endpoints = list(endpoint_slice.get("endpoints") or ())
        random.shuffle(endpoints)
        for endpoint in endpoints:
            reference = endpoint.get("targetRef") or {}
            if (endpoint.get("conditions") or {}).get("ready") is False or reference.get("namespace") != ctx.namespace:
                continue
            pod = await self._stores[PODS].storage.get(f"{ctx.namespace}/{reference.get('name')}")
            if pod is not None and endpoint["addresses"][0] in pod_addresses(pod.peek()):
                check_proxyable(endpoint["addresses"][0])
                return str(endpoint["addresses"][0])
        return ""


def _service_of(endpoint_slice: Object) -> str | None:
    name: str | None = (endpoint_slice["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
    return name


def _number(port: str) -> int | None:
    """Return the number of a port in a URL, or None if it is a name."""
    try:
        return parse_int(port)
    except ValueError:
        return None


def _port_name(service: Object, number: int) -> str:
    """Return the name of the service port with this number, or "" if it is unnamed.

    Raises:
        StatusError: 503, the Service has no such port.
    """
    for port in (service.get("spec") or {}).get("ports") or ():
        if port.get("port") == number:
            return port.get("name") or ""
    name = service["metadata"]["name"]
    raise status.service_unavailable(f"no service port {number} found for service {go_quote(name)}")
