"""The base class of `pods/proxy`, `services/proxy` and `nodes/proxy`, and the forwarding of a request to a backend.

Upstream: pkg/registry/core/{pod,service,node}, ResourceLocation; k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from tetrapod.core.subresources.links import Links
from tetrapod.core.subresources.locations import Backends, not_upgraded, unreachable
from tetrapod.core.subresources.stores import Stores
from tetrapod.generic.client.inprocess import QueueWriter
from tetrapod.generic.http.request import Request, Response, StreamResponse
from tetrapod.generic.proxy import BackendError, BackendPool, Endpoint, forward
from tetrapod.generic.proxy.headers import DROPPED_FOR_BROWSERS, forwarded_uri, pass_through_headers, upgrade_of
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest

_SAFE: Final = "/:@!$&'()*+,;=~-._"


class ProxyRest(Rest):
    """The base class of subresources that forward requests to the endpoint that `locate` returns."""

    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        return await forward_request(self._backends.pool, await self.locate(ctx, name), request, path)

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        """Return the endpoint for an object's name with optional scheme and port, as in `https:web:8443`.

        Raises:
            StatusError: the name is invalid, the object does not exist or it has no endpoint.
        """
        raise NotImplementedError


async def forward_request(pool: BackendPool, endpoint: Endpoint, request: Request, path: str) -> Response:
    """Forward the request to the endpoint and return its response, with links rewritten to lead through the proxy.

    A GET or HEAD of the proxy's root is redirected if it lacks the slash at the end.

    Args:
        path: the part of the request's path after `proxy`.

    Raises:
        StatusError: 503, the backend cannot be reached; 500, it did not accept an upgrade.
    """
    query = f"?{request.query_string}" if request.query_string else ""
    if path and request.path.endswith("/") and not path.endswith("/"):
        path += "/"
    asks_root = not path and not request.path.endswith("/")
    upgrade = upgrade_of(request.headers)
    if asks_root and not upgrade and request.method in ("GET", "HEAD"):
        return Response(301, [(b"location", f"{request.raw_path}/{query}".encode("latin-1"))])
    escaped = quote(path or "/", safe=_SAFE)
    prefix = quote(request.path.removesuffix(path or "/"), safe=_SAFE)
    uri = forwarded_uri(escaped, prefix).encode("latin-1")
    headers = [*pass_through_headers(request.headers, request.remote, ""), (b"x-forwarded-uri", uri)]
    target = escaped + query
    host = next((value for name, value in request.headers if name == b"host"), b"").decode("latin-1")
    try:
        response = await forward(
            pool,
            endpoint,
            request,
            target=target,
            headers=headers,
            host=host,
            only_upgraded=True,
            dropped=DROPPED_FOR_BROWSERS,
        )
        return await _with_rewritten_links(response, request, Links(prefix, endpoint.authority, host))
    except BackendError as error:
        if upgrade:
            raise not_upgraded(error) from None
        raise unreachable(error) from None


async def _with_rewritten_links(response: Response, request: Request, links: Links) -> Response:
    """Return the response with rewritten links if it is a redirect or an HTML page; others are returned unchanged."""
    headers = dict(response.headers)
    if location := headers.get(b"location"):
        moved = links.rewrite(location.decode("latin-1")).encode("latin-1")
        response.headers = [(name, moved if name == b"location" else value) for name, value in response.headers]
        return response
    if headers.get(b"content-type", b"").partition(b";")[0].strip() != b"text/html" or request.method == "HEAD":
        return response
    encoding = headers.get(b"content-encoding", b"").decode("latin-1")
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
    response_headers = [(name, value) for name, value in response.headers if name != b"content-length"]
    return Response(response.status, response_headers, page if page is not None else body)
