"""`pods/proxy`. Upstream: pkg/registry/core/pod/strategy.go, ResourceLocation."""

from __future__ import annotations

from tetrapod.core.subresources.locations import check_proxyable, endpoint_of, split_name
from tetrapod.core.subresources.proxy import ProxyRest
from tetrapod.core.subresources.stores import PODS
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object


class PodProxyRest(ProxyRest):
    """The subresource `pods/proxy`, which forwards requests to the pod's first IP.

    Without a port in the name, the first declared container port is used.
    """

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "pod")
        pod = (await self._stores[PODS].get(ctx, bare)).peek()
        address = next(iter(pod_addresses(pod)), "")
        check_proxyable(address)
        return endpoint_of(address, port or _first_port(pod), scheme)


def pod_addresses(pod: Object) -> list[str]:
    """Return the pod's IPs, primary first, from status.podIPs or else status.podIP; [] if it has none yet."""
    pod_status = pod.get("status") or {}
    pod_ips = [entry.get("ip", "") for entry in pod_status.get("podIPs") or ()]
    return pod_ips or ([pod_status["podIP"]] if pod_status.get("podIP") else [])


def _first_port(pod: Object) -> str:
    """Return the first containerPort of the first container that declares ports, or ""."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("ports"):
            return str(container["ports"][0].get("containerPort") or "")
    return ""
