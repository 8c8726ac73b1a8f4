"""`pods/exec`, `pods/attach` and `pods/portforward`: streams from the kubelet of the pod's node.

Upgraded connections are passed through. If a client uses WebSocket and the kubelet does not declare support for it, the
connection is translated to SPDY here, unless a feature gate switches that off.
Upstream: pkg/registry/core/pod/strategy.go (ExecLocation and others) and rest/subresources.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from tetrapod.core.subresources.locations import Backends, kubelet_at, node_name, node_status, not_upgraded
from tetrapod.core.subresources.stores import PODS, Stores
from tetrapod.core.v1.pods.logs import choose_container
from tetrapod.generic.authorization.interface import Authorizer, Decision
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.filters.authorization import attributes_of
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy import BackendError, Endpoint, forward
from tetrapod.generic.proxy.headers import pass_through_headers, upgrade_of
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object

if TYPE_CHECKING:
    from tetrapod.generic.proxy.streamtranslator import Streams
_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_STREAMING: Final = Counter(
    "apiserver_websocket_streaming_requests_total",
    "Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by "
    "subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; "
    "otherwise translated_at_apiserver.",
    ("subresource", "proxy_type"),
)
_WEBSOCKET_FEATURE: Final = "ExtendWebSocketsToKubelet"
"""The feature that such a kubelet's node declares, and the gate without which that is ignored."""
_TRANSLATED: Final = "TranslateStreamCloseWebsocketRequests"
"""The gate of the translation of exec and attach."""
_TUNNELLED: Final = "PortForwardWebsockets"
"""The gate of the translation of portforward."""


class _StreamRest(Rest):
    """The base of `pods/exec`, `pods/attach` and `pods/portforward`.

    Args:
        authorizer: checks the verb `create` of requests that started as a GET; None skips the check.
    """

    def __init__(self, stores: Stores, backends: Backends, authorizer: Authorizer | None) -> None:
        self._stores = stores
        self._backends = backends
        self._authorizer = authorizer

    async def _pod(self, ctx: Context, name: str) -> Object:
        return (await self._stores[PODS].get(ctx, name)).peek()

    async def _may_create(self, request: Request) -> None:
        """Authorize the verb `create` of a request with another verb, raising StatusError 403 unless it is allowed.

        A WebSocket starts with a GET, and users who may only read must not open a stream. The feature gate
        AuthorizePodWebsocketUpgradeCreatePermission switches the check off.
        """
        if not feature_gates.enabled("AuthorizePodWebsocketUpgradeCreatePermission"):
            return
        if request.info is None or request.info.verb == "create" or self._authorizer is None:
            return
        result = await self._authorizer.authorize(attributes_of(request)._replace(verb="create"))
        if result.decision is not Decision.ALLOW:
            raise status.forbidden(PODS, request.info.name, result.reason)

    async def _connect_to_kubelet(
        self, request: Request, pod: Object, path: str, query: list[tuple[str, str]], streams: Streams | None
    ) -> Response:
        """Forward the request to the kubelet of the pod's node, and return its response.

        Args:
            path: the path on the kubelet.
            query: the query on the kubelet.
            streams: the streams of exec and attach; None for portforward.

        Raises:
            StatusError: the pod has no node, the request does not ask for an upgrade, or the kubelet did not accept the
                upgrade.
        """
        if not node_name(pod):
            raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
        node = await node_status(self._stores, node_name(pod))
        kubelet = kubelet_at(node, self._backends)
        if not upgrade_of(request.headers):
            raise status.bad_request("Upgrade request required")
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            return await self._forward(
                request,
                kubelet,
                target,
                streams,
                supported=_WEBSOCKET_FEATURE in (node.get("declaredFeatures") or ()),
            )
        except BackendError as error:
            raise not_upgraded(error) from None

    async def _forward(
        self, request: Request, kubelet: Endpoint, target: str, streams: Streams | None, *, supported: bool
    ) -> Response:
        """Forward the request to the kubelet, and return its response, raising BackendError.

        Args:
            target: path and query on the kubelet.
            streams: the streams of exec and attach; None for portforward.
            supported: whether the kubelet supports WebSocket. If it does not, a WebSocket connection is translated to
                SPDY. An upgrade to SPDY is passed through in any case.
        """
        pool, headers = self._backends.pool, pass_through_headers(request.headers, request.remote)
        if not feature_gates.enabled(_TUNNELLED if streams is None else _TRANSLATED):
            return await forward(pool, kubelet, request, target=target, headers=headers, only_upgraded=True)
        translated = not (supported and feature_gates.enabled(_WEBSOCKET_FEATURE))
        from tetrapod.generic.http.websocket import offered_protocols

        # imported at the first request for a stream
        from tetrapod.generic.proxy.streamtranslator import PROTOCOL, translate
        from tetrapod.generic.proxy.streamtunnel import tunnel, tunnelled_protocols

        subresource = request.info.subresource if request.info is not None else ""
        _STREAMING.add((subresource, "translated_at_apiserver" if translated else "proxied_to_kubelet"))
        if translated and streams is not None and PROTOCOL in offered_protocols(request.headers):
            return await translate(pool, kubelet, request, target=target, headers=headers, streams=streams)
        if translated and streams is None and tunnelled_protocols(request.headers):
            return await tunnel(pool, kubelet, request, target=target, headers=headers)
        return await forward(pool, kubelet, request, target=target, headers=headers, only_upgraded=True)


class ExecRest(_StreamRest):
    """The subresources `pods/exec` and `pods/attach`; the request's subresource tells which."""

    async def connect(self, ctx: Context, name: str, options: Object, request: Request) -> Response:
        from tetrapod.generic.proxy.streamtranslator import Streams

        await self._may_create(request)
        pod = await self._pod(ctx, name)
        container = choose_container(pod, options.get("container") or "")
        query = [("command", word) for word in options.get("command") or ()] if ctx.subresource == "exec" else []
        streams = Streams(**{option: bool(options.get(option)) for option in _STREAMS})
        query += [(kubelet_name, "1") for option, kubelet_name in _STREAMS.items() if getattr(streams, option)]
        kubelet_path = f"/{ctx.subresource}/{quote(ctx.namespace)}/{quote(name)}/{quote(container)}"
        return await self._connect_to_kubelet(
            request, pod, kubelet_path, sorted(query, key=lambda pair: pair[0]), streams
        )


class PortForwardRest(_StreamRest):
    """The subresource `pods/portforward`."""

    async def connect(self, ctx: Context, name: str, options: Object, request: Request) -> Response:
        await self._may_create(request)
        pod = await self._pod(ctx, name)
        ports = options.get("ports")
        query = [("port", ",".join(map(str, ports)))] if ports else []
        return await self._connect_to_kubelet(
            request, pod, f"/portForward/{quote(ctx.namespace)}/{quote(name)}", query, None
        )
