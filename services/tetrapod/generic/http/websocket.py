"""The server side of WebSocket (RFC 6455): the handshake, frames and messages."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from tetrapod.generic.http.request import HeaderList

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
NORMAL: Final = (1000).to_bytes(2, "big")
"""The payload of a close frame that ends a connection normally."""
_LARGEST: Final = 32 << 20
"""Bytes of a message. Upstream: golang.org/x/net/websocket, DefaultMaxPayloadBytes."""


class WebSocketError(Exception):
    """A violation of the WebSocket protocol by the client, or a message that is too large."""


def is_websocket_request(headers: HeaderList) -> bool:
    """Return whether a request has the headers of an upgrade to WebSocket.

    Upstream: k8s.io/streaming/pkg/httpstream/wsstream/conn.go, IsWebSocketRequest
    """
    upgrade = next((value for name, value in headers if name == b"upgrade"), b"")
    return upgrade.lower() == b"websocket" and any(
        name == b"connection" and b"upgrade" in value.lower() for name, value in headers
    )


def offered_protocols(headers: HeaderList) -> list[str]:
    """Return the subprotocols that the client offers in its order; empty if it does not request a WebSocket."""
    by_name = dict(headers)
    if by_name.get(b"upgrade", b"").lower() != b"websocket":
        return []
    values = (value for name, value in headers if name == b"sec-websocket-protocol")
    return [item.strip().decode("latin-1") for value in values for item in value.split(b",")]


def handshake_response(headers: HeaderList, protocol: str) -> bytes:
    """Return the bytes of the 101 response to a WebSocket handshake.

    Args:
        headers: the headers of the request.
        protocol: the chosen subprotocol; "" for none.

    Raises:
        WebSocketError: the request is not a valid handshake.
    """
    by_name = dict(headers)
    key = by_name.get(b"sec-websocket-key", b"")
    if len(key) != 24 or by_name.get(b"sec-websocket-version") != b"13":
        raise WebSocketError("bad websocket handshake")
    return switching_protocols_head(key, protocol)


def switching_protocols_head(key: bytes, protocol: str) -> bytes:
    """Return the bytes of the 101 response to a handshake with this `Sec-WebSocket-Key`.

    `protocol` is the chosen subprotocol; "" for none.
    """
    accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    chosen = f"Sec-WebSocket-Protocol: {protocol}\r\n".encode("latin-1") if protocol else b""
    head = (
        b"HTTP/1.1 101 Switching Protocols\r\n"
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n%b\r\n"
    )
    return head % (accept, chosen)


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a whole message as one unmasked frame, as a server sends it.

    `opcode` is TEXT, BINARY, CLOSE, PING or PONG.
    """
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, size))
    elif size < 1 << 16:
        head = bytes((0x80 | opcode, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 127)) + size.to_bytes(8, "big")
    return head + payload


class Messages:
    """A decoder of the masked frames that a client sends, which joins the frames of a message.

    Args:
        largest: the maximum size of a message in bytes.
    """

    def __init__(self, largest: int = _LARGEST) -> None:
        self._largest = largest
        self._data = bytearray()
        self._opcode = 0
        self._payload = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the messages that are complete with the received bytes `data`, as pairs of opcode and payload.

        Bytes of an incomplete message are kept for the next call.

        Raises:
            WebSocketError: a frame is unmasked or uses an extension, or a message is too large.
        """
        self._data += data
        messages = []
        while (received := self._frame()) is not None:
            final, opcode, payload = received
            if opcode >= CLOSE:
                messages.append((opcode, payload))
                continue
            self._opcode = opcode or self._opcode
            self._payload += payload
            if len(self._payload) > self._largest:
                raise WebSocketError("message too large")
            if final:
                messages.append((self._opcode, bytes(self._payload)))
                self._payload.clear()
        return messages

    def _frame(self) -> tuple[bool, int, bytes] | None:
        data = self._data
        if len(data) < 2:
            return None
        size, start = data[1] & 0x7F, 2
        if not data[1] & 0x80 or data[0] & 0x70:
            raise WebSocketError("unmasked or extended frame")
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(data) < start:
                return None
            size = int.from_bytes(data[2:start], "big")
        if size > self._largest:
            raise WebSocketError("frame too large")
        end = start + 4 + size
        if len(data) < end:
            return None
        payload = _unmasked(bytes(data[start : start + 4]), bytes(data[start + 4 : end]))
        final, opcode = bool(data[0] & 0x80), data[0] & 0x0F
        del data[:end]
        return final, opcode, payload


def _unmasked(mask: bytes, payload: bytes) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
