"""`nodes/proxy`. Upstream: pkg/registry/core/node/strategy.go, ResourceLocation."""

from __future__ import annotations

from tetrapod.core.subresources.locations import check_host, endpoint_of, kubelet_of, split_name
from tetrapod.core.subresources.proxy import ProxyRest
from tetrapod.core.subresources.stores import NODES
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context


class NodeProxyRest(ProxyRest):
    """The subresource `nodes/proxy`, which forwards requests to the kubelet or to another port of the node."""

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "node")
        kubelet = await kubelet_of(self._stores, self._backends, bare, NODES)
        await check_host(kubelet.host)
        return kubelet if port in ("", str(kubelet.port)) else endpoint_of(kubelet.host, port, scheme)
