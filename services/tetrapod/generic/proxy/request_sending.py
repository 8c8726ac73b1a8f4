"""Sending one request to a backend: its head, and a body that arrives while it is sent."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import BodyReader, HeaderList
from tetrapod.generic.proxy.connection import BackendConnection
from tetrapod.generic.proxy.dialing import Connection
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.h2.headers import encode_request
from tetrapod.generic.proxy.headers import render_request

_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests have a Content-Length even if the body is empty."""


def begin(
    connection: Connection,
    method: str,
    target: str,
    headers: HeaderList,
    body: BodyReader | bytes,
    host: str,
    upgrade: bytes,
    length: int | None,
) -> Exchange:
    """Send the head of a request over a connection, with the body if that is not streamed, and return the exchange.

    Args:
        connection: the connection.
        method: the method.
        target: path and query.
        headers: the headers, without Host and framing.
        body: the body, or a reader of a body that `send_body` sends.
        host: the Host header.
        upgrade: the protocol of a requested upgrade; b"" for none.
        length: the size of a streamed body in bytes; None to send it in chunks.
    """
    data, streamed = (body, False) if isinstance(body, bytes) else (b"", True)
    if isinstance(connection, BackendConnection):
        head = render_request(method, target, host, headers, _framing(method, body, length, upgrade))
        connection.begin(method, head, data, all_sent=not streamed, chunked=streamed and length is None)
        return connection
    known = length if streamed else len(data) if data or method in _WITH_BODY else None
    block = encode_request(method, host, target, headers, known)
    return connection.begin(method, block, data, all_sent=not streamed)


async def send_body(exchange: Exchange, body: BodyReader, length: int | None) -> None:
    """Send a request body as it arrives. If it has not `length` bytes, end the connection to the backend.

    Otherwise the backend would take the surplus, or the next request, for something else.

    Args:
        exchange: the exchange that `begin` returned. A failure of the body ends it.
        body: reads the body from the client.
        length: the size of the body in bytes; None to send it in chunks.
    """
    left = length
    try:
        while left != 0 and (data := await body.chunk()):
            if left is not None and (left := left - len(data)) < 0:
                break
            await exchange.send(data)
            if exchange.lost:
                return
        if left:
            raise BackendError(f"http: ContentLength={length} with Body length {(length or 0) - left}")
        exchange.sender = None
        exchange.end_request()
    # the client disconnected or its body is malformed: the backend must not take a part of the body for the whole
    except Exception as error:
        exchange.sender = None
        exchange.fail_request_body(error)


def _framing(method: str, body: BodyReader | bytes, length: int | None, upgrade: bytes) -> bytes:
    lines = b"Connection: Upgrade\r\nUpgrade: %b\r\n" % upgrade if upgrade else b""
    if not isinstance(body, bytes):
        return lines + (b"Transfer-Encoding: chunked\r\n" if length is None else b"Content-Length: %d\r\n" % length)
    if body or method in _WITH_BODY:
        return lines + b"Content-Length: %d\r\n" % len(body)
    return lines
