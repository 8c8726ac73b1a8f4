"""A stream that is served over WebSocket: each write is a message, and the messages of the client are ignored.

Watches and logs are served in this form to clients that request an upgrade, such as browsers.
Upstream: k8s.io/streaming/pkg/httpstream/wsstream/stream.go, k8s.io/apiserver/pkg/endpoints/handlers/watch.go
(HandleWS), golang.org/x/net/websocket.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from tetrapod.generic.http.request import (
    ClientGone,
    HeaderList,
    Hijacked,
    Request,
    Response,
    StreamWriter,
    UpgradeResponse,
)
from tetrapod.generic.http.websocket import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    TEXT,
    Messages,
    WebSocketError,
    frame,
    switching_protocols_head,
)

Encode = Callable[[bytes], bytes]
"""A function that returns the frame of a message."""
_LARGEST_RECEIVED: Final = 1 << 20
"""Bytes of a message of the client, which is ignored: a larger one ends the connection."""
_PIECE: Final = 2048
"""Maximum bytes of a log in one message, as upstream's messageCopy."""


def text(payload: bytes) -> bytes:
    """Return a message as a text frame."""
    return frame(TEXT, payload)


def binary(payload: bytes) -> bytes:
    """Return a message as a binary frame."""
    return frame(BINARY, payload)


def _base64(payload: bytes) -> bytes:
    return frame(TEXT, base64.b64encode(payload))


_READER_PROTOCOLS: Final[Mapping[str, Encode]] = {"": binary, "binary.k8s.io": binary, "base64.binary.k8s.io": _base64}
"""Upstream: NewDefaultReaderProtocols."""


class Handshake(NamedTuple):
    """The accepted handshake of a client.

    Attributes:
        key: the Sec-WebSocket-Key of the client.
        protocol: the chosen subprotocol; "" for none.
    """

    key: bytes
    protocol: str


def watch_handshake(request: Request) -> Handshake | UpgradeResponse:
    """Return the handshake of a watch, or the response (400 or 403) that rejects it.

    The client must send an Origin header, as upstream's websocket.Handler requires. It may offer one subprotocol of any
    name, which is chosen.
    """
    result = _validate_handshake(request.headers)
    if isinstance(result, UpgradeResponse):
        return result
    key, offered = result
    if not _is_absolute(request.header(b"origin")):
        return _rejected(403)
    return Handshake(key, offered[0] if offered else "") if len(offered) < 2 else _rejected(400)


def reader_handshake(request: Request) -> Handshake | UpgradeResponse:
    """Return the handshake of a byte stream, such as a log, or the response (400 or 403) that rejects it.

    The first offered subprotocol that is supported is chosen.
    """
    result = _validate_handshake(request.headers)
    if isinstance(result, UpgradeResponse):
        return result
    key, offered = result
    chosen = next((name for name in offered or [""] if name in _READER_PROTOCOLS), None)
    return _rejected(403) if chosen is None else Handshake(key, chosen)


def _validate_handshake(headers: HeaderList) -> tuple[bytes, list[str]] | UpgradeResponse:
    """Return the key and the offered subprotocols of a handshake, or the 400 response that rejects it.

    Upstream: hybiServerHandshaker.ReadHandshake
    """
    first = dict(reversed(headers))
    key = first.get(b"sec-websocket-key", b"")
    if not key:
        return _rejected(400, b"mismatch challenge/response")
    if first.get(b"sec-websocket-version") != b"13":
        return _rejected(400, b"missing or bad WebSocket Version", b"Sec-WebSocket-Version: 13\r\n")
    offered = first.get(b"sec-websocket-protocol", b"").decode("latin-1").strip()
    return key, [name.strip() for name in offered.split(",")] if offered else []


def _rejected(status: int, message: bytes = b"", headers: bytes = b"") -> UpgradeResponse:
    """Return a response that rejects a handshake. It has no other headers than these, because it takes the connection.

    Upstream: golang.org/x/net/websocket/server.go, newServerConn
    """
    head = b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), headers, message)

    async def write_head(client: Hijacked) -> None:
        client.transport.write(head)

    return UpgradeResponse(write_head)


def _is_absolute(origin: str) -> bool:
    """Return whether the Origin is an absolute URL or an absolute path, which Go's url.ParseRequestURI accepts."""
    try:
        return origin.startswith("/") or bool(urlsplit(origin).scheme)
    except ValueError:
        return False


def serve_messages(
    handshake: Handshake, run: Callable[[StreamWriter], Awaitable[None]], encode: Encode
) -> UpgradeResponse:
    """Return a response that switches protocols and then runs a stream, of which each write is sent as one message.

    Args:
        handshake: the accepted handshake.
        run: writes the stream, such as the events of a watch, to the writer with which it is called.
        encode: returns the frame of a message: `text` or `binary`.
    """
    return UpgradeResponse(_Serving(switching_protocols_head(handshake.key, handshake.protocol), run, encode).run)


def serve_bytes(handshake: Handshake, response: Response) -> UpgradeResponse:
    """Return a response that switches protocols and sends the body of `response` in messages of at most 2,048 bytes.

    They follow an empty message, which upstream calls a ping. The subprotocol decides whether they are binary or
    base64.
    """
    encode = _READER_PROTOCOLS[handshake.protocol]

    def encode_pieces(data: bytes) -> bytes:
        return b"".join(encode(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE))

    async def write_body(writer: StreamWriter) -> None:
        writer.write(response.body)
        await writer.drain()

    run = getattr(response, "run", write_body)
    head = switching_protocols_head(handshake.key, handshake.protocol) + encode(b"")
    return UpgradeResponse(_Serving(head, run, encode_pieces).run)


class _Serving:
    """An upgrade to WebSocket, which sends a stream as messages and closes the connection when the stream ends.

    It also closes the connection when the client has closed its side.

    Args:
        head: the head of the response, and bytes to send directly behind it.
        run: writes the stream to the writer with which it is called; each write becomes a message.
        encode: returns the frames of the message for the data of one write.
    """

    def __init__(self, head: bytes, run: Callable[[StreamWriter], Awaitable[None]], encode: Encode) -> None:
        self._head, self._run, self._encode = head, run, encode

    async def run(self, client: Hijacked) -> None:
        writer = _Writer(self._encode)
        client.transport.write(self._head)
        client.take_over(writer)
        stream = asyncio.ensure_future(self._run(writer))
        gone = asyncio.ensure_future(writer.wait_closed())
        try:
            await asyncio.wait((stream, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            stream.cancel()
            await asyncio.wait((stream,))
            writer.end()
        if not stream.cancelled() and (error := stream.exception()) is not None and not isinstance(error, ClientGone):
            try:
                raise error
            finally:
                del error, stream  # the traceback of the error refers to this frame


class _Writer(asyncio.Protocol):
    """The StreamWriter of an upgraded connection. The client's pings are answered, its other messages are ignored."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._transport: Any = None
        self._received = Messages(_LARGEST_RECEIVED)
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    def write(self, data: bytes) -> None:
        if data and not self.closed:
            self._transport.write(self._encode(data))

    def buffered(self) -> int:
        return int(self._transport.get_write_buffer_size())

    async def drain(self) -> None:
        await self._writable.wait()
        if self.closed:
            raise ClientGone

    @property
    def closed(self) -> bool:
        return self._gone.is_set() or self._transport is None

    async def wait_closed(self) -> None:
        await self._gone.wait()

    def end(self) -> None:
        """Send a close frame and close the connection."""
        if not self.closed:
            self._transport.write(frame(CLOSE, NORMAL))
        if self._transport is not None:
            self._transport.close()

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for opcode, payload in self._received.feed(data):
                if opcode == PING:
                    self._transport.write(frame(PONG, payload))
                elif opcode == CLOSE:
                    self._end_by_peer()
        except WebSocketError:
            self._end_by_peer()

    def _end_by_peer(self) -> None:
        self.end()
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        self._gone.set()
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wake_waiters()

    def pause_writing(self) -> None:
        """Make `drain` wait, and stop reading: pongs for a client that does not read would fill the buffer."""
        self._writable.clear()
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if not self._transport.is_closing():
            self._transport.resume_reading()
