"""The base class of `pods/proxy`, `services/proxy` and `nodes/proxy`, and the forwarding of a request to a backend.

Upstream: pkg/registry/core/{pod,service,node}, ResourceLocation; k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import quote

from tetrapod.core.subresources.links import MAX_PAGE, Links
from tetrapod.core.subresources.locations import Backends, not_upgraded, unreachable
from tetrapod.core.subresources.stores import Stores
from tetrapod.generic.http.request import (
    AnswerBroken,
    ForwardingWriter,
    HeaderList,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
)
from tetrapod.generic.proxy import BackendError, BackendPool, Endpoint, forward
from tetrapod.generic.proxy.headers import DROPPED_FOR_BROWSERS, forwarded_uri, pass_through_headers, upgrade_of
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

_SAFE: Final = "/:@!$&'()*+,;=~-._"
_AT_ONCE: Final = 8 * 1024
"""Bytes of a page up to which its links are rewritten in the event loop: a KiB of tags takes 0.6 ms."""


class ProxyRest(Rest):
    """The base class of subresources that forward requests to the endpoint that `locate` returns.

    Args:
        stores: the stores by resource, to look up the object.
        backends: the connection pool, and the settings of connections to kubelets.
    """

    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, options: Object, request: Request) -> Response:
        endpoint = await self.locate(ctx, name)
        return await forward_request(self._backends.pool, endpoint, request, options.get("path") or "")

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        """Return the endpoint for an object's name with optional scheme and port, as in `https:web:8443`.

        Raises:
            StatusError: the name is invalid, the object does not exist or it has no endpoint.
        """
        raise NotImplementedError


async def forward_request(pool: BackendPool, endpoint: Endpoint, request: Request, path: str) -> Response:
    """Forward the request to the endpoint and return its response, with links rewritten to lead through the proxy.

    A GET or HEAD of `…/proxy` without a slash at the end is redirected to `…/proxy/`.

    Args:
        pool: the connections to backends.
        endpoint: the backend.
        request: the request of the client.
        path: the part of the request's path after `…/proxy`, which becomes the path at the backend.

    Raises:
        StatusError: 503, the backend cannot be reached; 500, it did not accept an upgrade.
    """
    query = f"?{request.query_string}" if request.query_string else ""
    asks_root = not path and not request.path.endswith("/")
    upgrade = upgrade_of(request.headers)
    if asks_root and not upgrade and request.method in ("GET", "HEAD"):
        return Response(301, [(b"location", f"{request.raw_path}/{query}".encode("latin-1"))])
    escaped = quote(path or "/", safe=_SAFE)
    prefix = quote(request.path.removesuffix(path or "/"), safe=_SAFE)
    uri = forwarded_uri(escaped, prefix).encode("latin-1")
    headers = [*pass_through_headers(request.headers, request.remote), (b"x-forwarded-uri", uri)]
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
        return await with_rewritten_links(response, request, Links(prefix, endpoint.authority, host))
    except BackendError as error:
        if upgrade:
            raise not_upgraded(error) from None
        raise unreachable(error) from None


async def with_rewritten_links(response: Response, request: Request, links: Links) -> Response:
    """Return the response with rewritten links if it is a redirect or an HTML page; others are returned unchanged.

    Pages longer than `MAX_PAGE`, or with a content encoding other than gzip and deflate, are returned unchanged too.

    Raises:
        StatusError: 503, the page does not have the encoding that its headers name.
    """
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
    page_headers = [(name, value) for name, value in response.headers if name != b"content-length"]
    if isinstance(response, StreamResponse):
        return _rewritten_stream(response, page_headers, links, encoding)
    try:
        page = await _rewritten(response.body, links, encoding)
    except ValueError as error:
        raise unreachable(error) from None
    return Response(response.status, page_headers, page)


async def _rewritten(body: bytes, links: Links, encoding: str) -> bytes:
    page = await offloaded(bool(encoding) or len(body) > _AT_ONCE, links.page, body, encoding)
    return body if page is None else page


def _rewritten_stream(response: StreamResponse, headers: HeaderList, links: Links, encoding: str) -> StreamResponse:
    """Return a response that collects the page while it is received, and writes it with rewritten links at its end.

    Writing it raises `AnswerBroken` if the page does not have the encoding.

    Args:
        response: the backend's response.
        headers: the headers of the returned response.
        links: rewrites the links.
        encoding: the value of Content-Encoding.
    """

    async def run(writer: StreamWriter) -> None:
        collected = _PageWriter(writer)
        await response.run(collected)
        if collected.page is None:
            return
        try:
            writer.write(await _rewritten(bytes(collected.page), links, encoding))
        except ValueError as error:
            log.warning("a backend sent a page that is not encoded with %s: %s", encoding, error)
            raise AnswerBroken(str(error)) from error
        await writer.drain()

    stream = StreamResponse(response.status, headers, run, endless=response.endless)
    stream.trailers = response.trailers
    return stream


class _PageWriter(ForwardingWriter):
    """A writer that collects a page of at most `MAX_PAGE` bytes, and forwards a longer one.

    Attributes:
        page: the collected bytes; None once they were too many and have been forwarded.

    Args:
        writer: gets the bytes of pages that are too long.
    """

    def __init__(self, writer: StreamWriter) -> None:
        super().__init__(writer)
        self.page: bytearray | None = bytearray()

    def write(self, data: bytes) -> None:
        if self.page is None:
            self._writer.write(data)
            return
        self.page += data
        if len(self.page) > MAX_PAGE:
            self._writer.write(bytes(self.page))
            self.page = None
