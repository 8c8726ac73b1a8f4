"""`AsgiApplication`: an aggregated API server as an ASGI application, to mount in an application of a web framework.

The identity of the client comes from the extension `tls` of the scope, which `CertificateProtocol` (asgi_serving.py)
adds. Without it no client certificate is known, so that identity headers of the front proxy are ignored.
Specification: https://asgi.readthedocs.io/en/latest/specs/www.html and specs/tls.html
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from tetrapod.generic.http.error_responses import panic_response, status_response
from tetrapod.generic.http.request import AnswerBroken, ClientGone, Handler, Request, Response, StreamResponse
from tetrapod.machinery.status import StatusError, internal_error, request_entity_too_large, service_unavailable

log = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
HIGH_WATER: Final = 65536
"""Bytes of a stream that may wait for the client before `drain` waits."""


class AsgiApplication:
    """The ASGI application. Requests that arrive before `open` or after `close` get a 503."""

    def __init__(self) -> None:
        """Create the application, which serves nothing yet."""
        self._handler: Handler | None = None

    def open(self, handler: Handler) -> None:
        """Pass requests to this handler from now on."""
        self._handler = handler

    def close(self) -> None:
        """Answer further requests with 503."""
        self._handler = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request. WebSockets are rejected, and messages of the lifespan are acknowledged.

        Raises:
            AnswerBroken: a response failed after it had begun; the server then closes the connection.
        """
        if scope["type"] == "lifespan":
            await _acknowledge(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            await _AsgiExchange(scope, receive, send).run(self._handler or _unavailable)


async def _acknowledge(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


async def _unavailable(_: Request) -> Response:
    raise service_unavailable("the server has not started, or is stopping")


def _request(scope: MutableMapping[str, Any]) -> Request:
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode()
    request = Request(
        scope["method"],
        path,
        raw_path=raw.decode("latin-1"),
        query_string=scope.get("query_string", b"").decode("latin-1"),
        headers=[(name.lower(), value) for name, value in scope["headers"]],
    )
    request.remote = (scope.get("client") or ("",))[0]
    request.scheme = scope.get("scheme", "http")
    request.http_version = scope.get("http_version", "1.1")
    tls = (scope.get("extensions") or {}).get("tls") or {}
    if error := tls.get("client_cert_error"):
        request.certificate_error = error
    else:
        chain = tls.get("client_cert_chain") or ()
        request.peer_certificates = tuple(ssl.PEM_cert_to_DER_cert(pem) for pem in chain)
    return request


class _AsgiExchange:
    """One request: the reader of its body, and the writer of a streamed response."""

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._request = _request(scope)
        self._request.body, self._request.disconnected = self, self.wait_closed
        self._complete = False  # the body was received
        self._gone = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._written, self._sent = asyncio.Event(), asyncio.Event()

    async def run(self, handler: Handler) -> None:
        """Call the handler and send its response. Errors become a Status, as in `http/exchange.py`."""
        request = self._request
        try:
            response = await handler(request)
        except StatusError as error:
            response = status_response(error)
        except ClientGone:
            return
        except Exception:
            log.exception("handler of %s %s failed", request.method, request.raw_path)
            response = panic_response()
        if type(response) is not Response and not isinstance(response, StreamResponse):
            response = status_response(internal_error("a connection cannot be taken over in an ASGI application"))
        try:
            if isinstance(response, StreamResponse):
                await self._stream(response)
            else:
                headers = [*response.headers, (b"content-length", str(len(response.body)).encode())]
                await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
                await self._send({"type": "http.response.body", "body": response.body})
        finally:
            if self._watching is not None:
                self._watching.cancel()
            request.release_connection()

    # --- the body

    async def chunk(self) -> bytes:
        """Wait for the next bytes of the body and return them; b"" at its end."""
        while not self._complete:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._gone.set()
                raise ClientGone
            self._complete = not message.get("more_body", False)
            if message.get("body"):
                return bytes(message["body"])
        return b""

    async def read(self, limit: int) -> bytes:
        """Return the whole body, raising StatusError (413) if it is longer than `limit` bytes."""
        pieces, size = [], 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                raise request_entity_too_large(f"limit is {limit}")
            pieces.append(piece)
        return b"".join(pieces)

    # --- a streamed response

    async def _stream(self, response: StreamResponse) -> None:
        await self._send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        if self._request.method == "HEAD":
            await self._send({"type": "http.response.body", "body": b""})
            return
        self._watch()
        producing = asyncio.ensure_future(response.run(self))
        producing.add_done_callback(lambda _: self._written.set())
        gone = asyncio.ensure_future(self._gone.wait())
        gone.add_done_callback(lambda _: producing.cancel())
        try:
            await self._pump(producing)
        finally:
            gone.cancel()
            producing.cancel()
        if self._gone.is_set() or producing.cancelled():
            return
        if (error := producing.exception()) is not None and not isinstance(error, ClientGone):
            if not isinstance(error, AnswerBroken):
                log.error("stream of %s %s failed: %s", self._request.method, self._request.raw_path, error)
            raise AnswerBroken("the response is incomplete")
        await self._send({"type": "http.response.body", "body": b""})

    async def _pump(self, producing: asyncio.Future[None]) -> None:
        """Send what is written until the producer has ended and nothing is left."""
        while not (producing.done() and not self._pieces):
            await self._written.wait()
            self._written.clear()
            while self._pieces:
                body = b"".join(self._pieces)
                self._pieces.clear()
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
                self._buffered -= len(body)
                self._sent.set()
            if producing.done():
                return

    def write(self, data: bytes) -> None:
        """Write a piece of the body, without waiting."""
        self._pieces.append(data)
        self._buffered += len(data)
        self._written.set()

    def buffered(self) -> int:
        """Return the number of bytes that the ASGI server has not taken yet."""
        return self._buffered

    async def drain(self) -> None:
        """Wait until fewer than `HIGH_WATER` bytes are buffered, raising ClientGone if the client disconnected."""
        while self._buffered >= HIGH_WATER and not self._gone.is_set():
            self._sent.clear()
            await self._sent.wait()
        if self._gone.is_set():
            raise ClientGone

    @property
    def closed(self) -> bool:
        """Whether the client has disconnected."""
        return self._gone.is_set()

    async def wait_closed(self) -> None:
        """Wait until the client has disconnected."""
        self._watch()
        await self._gone.wait()

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._until_disconnected())

    async def _until_disconnected(self) -> None:
        """Set `_gone` when the client disconnects. The rest of an unread body is dropped."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
        self._sent.set()
