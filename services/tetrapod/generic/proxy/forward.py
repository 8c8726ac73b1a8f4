"""Forwarding of a request to a backend and of its response to the client.

It behaves as kube-aggregator's UpgradeAwareHandler. Bodies are streamed in both directions without being collected. A
response that has arrived completely becomes a plain `Response`, and a 101 connects the client and the backend directly.
Upstream: kube-aggregator/pkg/apiserver/handler_proxy.go; k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.peers import RESPONSE_HEADERS
from tetrapod.generic.http.request import (
    AnswerBroken,
    BodyReader,
    HeaderList,
    Hijacked,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)
from tetrapod.generic.http.response_head import render
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.headers import (
    DROPPED_FROM_BACKENDS,
    DROPPED_FROM_PEERS,
    Unsendable,
    returned_headers,
    returned_trailers,
    shared_headers,
    upgrade_of,
)
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.splice import Splice

log = logging.getLogger(__name__)

_SWITCHED: Final = 'backend tried to switch protocol "{}" when "" was requested\n'
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
WHOLE: Final = 64 * 1024
"""The maximum size in bytes of request bodies that are sent together with the head, if they have arrived. That takes
one write and no task, and a slow client does not occupy a backend connection.
"""


class NotUpgraded(BackendError):
    """The backend answered an upgrade request with a status below 400 other than 101."""


async def forward(  # noqa: PLR0913 - see BackendPool.exchange
    pool: BackendPool,
    endpoint: Endpoint,
    request: Request,
    *,
    target: str = "",
    headers: HeaderList | None = None,
    host: str = "",
    redirects: bool = True,
    only_upgraded: bool = False,
    dropped: Collection[bytes] = DROPPED_FROM_BACKENDS,
) -> Response:
    """Forward a request and return the backend's response, which may have an error status.

    The body of the response may be streamed while the client reads it.

    Args:
        pool: the connections.
        endpoint: the backend.
        request: the request. It is cancelled from now on when the client disconnects.
        target: path and query; "" for those of the request.
        headers: the headers to send; None for those of `forwarded_headers`.
        host: the Host header; "" for that of the endpoint.
        redirects: whether redirects are passed back. Otherwise they become a 502, because a client that follows one
            would send its token along.
        only_upgraded: whether a response with a status below 400 other than 101 to an upgrade request raises
            NotUpgraded. Otherwise it is passed back.
        dropped: the response headers that are not passed back; see `returned_headers`.

    Raises:
        BackendError: the backend cannot be reached, the response is malformed, or the identity cannot be sent;
            NotUpgraded if `only_upgraded` forbids the response.
        ClientGone: the client closed the connection before the end of a short body, which is read first.
    """
    request.cancel_when_gone = True
    if not target:
        target = f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path
    if headers is None:
        try:
            headers = shared_headers(request)
        except Unsendable as error:
            raise BackendError(str(error), no_response=True) from None
    upgrade = upgrade_of(request.headers) if request.upgrade is not None else b""
    length = _length(request.headers)
    request_body: BodyReader | bytes = request.body
    if length is not None and length <= WHOLE:
        request_body = await request.body.read(length) if length else b""
    connection = await pool.exchange(
        endpoint,
        request.method,
        target,
        headers,
        request_body,
        host=host,
        upgrade=upgrade,
        length=length,
        shared=_is_watch(request),
    )
    if upgrade and only_upgraded and connection.status != 101 and connection.status < 400:
        connection.close()
        raise NotUpgraded(f"invalid upgrade response: status code {connection.status}")
    if connection.status == 101:
        return (
            _switch(connection, pool.max_bytes_per_second, from_peer=dropped is DROPPED_FROM_PEERS)
            if upgrade
            else _error_response(connection, 503, _SWITCHED.format(_switched_to(connection.headers)))
        )
    if not redirects and _redirects(connection):
        return _error_response(connection, 502, _REDIRECTED)
    response_headers, trailers = returned_headers(connection.headers, dropped), connection.trailers
    body = connection.complete_body()
    if body is not None and not trailers:
        return Response(connection.status, response_headers, body)
    return _streamed(connection, response_headers, body, trailers, endpoint, request)


def _is_watch(request: Request) -> bool:
    return request.info is not None and request.info.verb == "watch"


def _redirects(connection: Exchange) -> bool:
    return 300 <= connection.status <= 399 and any(name == b"location" and value for name, value in connection.headers)


def _streamed(
    connection: Exchange,
    headers: HeaderList,
    body: bytes | None,
    trailers: HeaderList,
    endpoint: Endpoint,
    request: Request,
) -> StreamResponse:
    """Return a response whose body is passed on as it arrives from the backend, and whose trailers follow it.

    Args:
        connection: the exchange with the backend.
        headers: the headers of the response.
        body: the body if it has arrived completely, else None.
        trailers: the trailers of the exchange, which are complete when the body is.
        endpoint: the backend.
        request: the request that was forwarded.
    """
    passed_trailers = HeaderList()

    async def run(writer: StreamWriter) -> None:
        try:
            if body is None:
                await connection.pipe(writer)
            else:
                writer.write(body)
        except BackendError as error:
            log.warning(
                "backend %s did not complete its response to %s: %s", endpoint.authority, request.raw_path, error
            )
            raise AnswerBroken(str(error)) from error
        finally:
            if body is None and not connection.complete:
                connection.close()
        passed_trailers.extend(returned_trailers(trailers))

    stream = StreamResponse(connection.status, headers, run, endless=_is_watch(request))
    stream.trailers = passed_trailers
    return stream


def _error_response(connection: Exchange, code: int, text: str) -> Response:
    connection.close()
    headers = [TEXT_TYPE]
    if code == 503:
        headers.append(NOSNIFF)  # as Go's http.Error does
    return Response(code, headers, text.encode())


def _switched_to(headers: HeaderList) -> str:
    return next((value.decode("latin-1") for name, value in headers if name == b"upgrade"), "")


def _length(headers: HeaderList) -> int | None:
    """Return the size of a request body in bytes by its headers: 0 if it has none, None if it is chunked."""
    length: int | None = 0
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            length = None
    return length


def _switch(connection: Exchange, rate: int, *, from_peer: bool) -> UpgradeResponse:
    """Return the 101 response to an upgrade request that the backend accepted; it joins the two connections.

    Args:
        connection: the exchange with the 101 of the backend.
        rate: the limit of bytes per second in each direction; 0 for none.
        from_peer: whether the backend is a peer service of this aggregator (core, extensions or auth). Its internal
            headers (RESPONSE_HEADERS) are then set in `headers` of the response, for the filters of this server. The
            client never gets them.
    """
    public_headers = [header for header in connection.headers if header[0] not in RESPONSE_HEADERS]

    async def run(client: Hijacked) -> None:
        client.transport.write(render(101, b"", public_headers, b""))
        splice = Splice(rate)
        connection.detach(splice.backend)
        client.take_over(splice.client)
        await splice.run()

    response = UpgradeResponse(run)
    if from_peer:
        response.headers = [header for header in connection.headers if header[0] in RESPONSE_HEADERS]
    return response
