"""`pods/exec|attach|portforward`: the upgraded connection is passed through to the kubelet of the pod's node.

Upstream: pkg/registry/core/pod/strategy.go (ExecLocation …) and rest/subresources.go. The protocols within (SPDY, or channels over
WebSocket) are between client and kubelet: none is translated into the other.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs, quote, urlencode

from tetrapod.core.rests.locations import Backends, dial_error, kubelet_of, node_name, passed_headers
from tetrapod.core.rests.logs import LogRest, choose_container
from tetrapod.core.rests.proxies import NodeProxyRest, PodProxyRest, ServiceProxyRest
from tetrapod.core.rests.stores import PODS, Stores
from tetrapod.generic.proxy import BackendError, forward
from tetrapod.generic.proxy.headers import upgrade_of
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Request, Response
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object

_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


class _StreamRest(Rest):
    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def _pod(self, ctx: Context, name: str) -> Object:
        return (await self._stores[PODS].get(ctx, name)).peek()

    async def _forward(self, request: Request, pod: Object, path: str, query: list[tuple[str, str]]) -> Response:
        if not node_name(pod):
            raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
        kubelet = await kubelet_of(self._stores, self._backends, node_name(pod))
        if not upgrade_of(request.headers):
            raise status.bad_request("Upgrade request required")
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            return await forward(self._backends.pool, kubelet, request, target=target, headers=passed_headers(request))
        except BackendError as error:
            raise dial_error(error) from None


class ExecRest(_StreamRest):
    """exec and attach."""

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        options = parse_qs(request.query_string, keep_blank_values=True)
        pod = await self._pod(ctx, name)
        container = choose_container(pod, (options.get("container") or [""])[0])
        query = [("command", word) for word in options.get("command") or ()] if ctx.subresource == "exec" else []
        query += [(theirs, "1") for ours, theirs in _STREAMS.items() if _asked(options, ours)]
        where = f"/{ctx.subresource}/{quote(ctx.namespace)}/{quote(name)}/{quote(container)}"
        return await self._forward(request, pod, where, sorted(query, key=lambda pair: pair[0]))


def _asked(options: dict[str, list[str]], name: str) -> bool:
    return (options.get(name) or ["false"])[0].lower() not in ("false", "0")


class PortForwardRest(_StreamRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        pod = await self._pod(ctx, name)
        ports = parse_qs(request.query_string).get("ports") or []
        query = [("port", ",".join(ports))] if ports else []
        return await self._forward(request, pod, f"/portForward/{quote(ctx.namespace)}/{quote(name)}", query)


def stream_rests(stores: Stores, backends: Backends) -> dict[str, Rest]:
    return {
        "pods/log": LogRest(stores, backends),
        "pods/exec": ExecRest(stores, backends),
        "pods/attach": ExecRest(stores, backends),
        "pods/portforward": PortForwardRest(stores, backends),
        "pods/proxy": PodProxyRest(stores, backends),
        "services/proxy": ServiceProxyRest(stores, backends),
        "nodes/proxy": NodeProxyRest(stores, backends),
    }
