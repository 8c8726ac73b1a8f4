"""`IncomingBody`: the body of a request as its connection brings it, piece by piece, and as a handler reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from tetrapod.generic.request import ClientGone
from tetrapod.machinery.status import StatusError, request_entity_too_large

HIGH_WATER: Final = 65536
"""Bytes of a request body that wait in memory before reading from the client pauses."""
_MALFORMED: Final = "malformed chunked encoding"
"""Upstream says so too, with 500: reading failed, and nobody asked whose fault it was."""


class Carrier(Protocol):
    """Of a connection what the body of a request needs."""

    transport: asyncio.Transport
    flow: FlowControl


class IncomingBody:
    """A request's BodyReader. The exchange that has it (exchange.py) sets its fields: they are one object, made for each request."""

    __slots__ = (
        "_chunks",
        "_pending",
        "_waiter",
        "broken",
        "complete",
        "done",
        "expects_continue",
        "gone",
        "keep_alive",
        "length",
        "protocol",
    )

    protocol: Carrier
    length: int
    """Content-Length of the request; -1 where it does not say so."""
    complete: bool
    """The whole body has arrived."""
    broken: bool
    """What came cannot be a body."""
    expects_continue: bool
    """The client waits for `100 Continue`."""
    gone: bool
    """The client is."""
    done: bool
    """The request is answered: what still comes of its body is dropped."""
    keep_alive: bool
    """The connection lives on after the answer."""
    _chunks: deque[bytes]
    _pending: int
    _waiter: asyncio.Future[None] | None

    # --- from the connection

    def feed(self, data: bytes) -> None:
        """A piece has arrived; beyond HIGH_WATER of them the connection is not read from."""
        if self.done:
            return
        self._chunks.append(data)
        self._pending += len(data)
        if self._pending > HIGH_WATER:
            self.protocol.flow.pause_reading()
        self._wake()

    def end_of_body(self) -> None:
        """The last piece has arrived."""
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def body_breaks_off(self) -> None:
        """What came cannot be a body: whoever reads on is told so, and nothing more is read on this connection."""
        self.broken = True
        self.keep_alive = False
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- to the handler

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises StatusError 413 beyond `limit` bytes, 500 where it breaks off, ClientGone."""
        if self.length > limit:
            raise request_entity_too_large(f"limit is {limit}")
        parts: list[bytes] = []
        size = 0
        while True:
            while self._chunks:
                part = self._chunks.popleft()
                parts.append(part)
                size += len(part)
            self._pending = 0
            if size > limit:
                raise request_entity_too_large(f"limit is {limit}")
            if self.complete:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            await self._more()

    async def chunk(self) -> bytes:
        """The next piece, b"" at the end. Raises StatusError 500, ClientGone."""
        while not self._chunks:
            if self.complete:
                return b""
            await self._more()
        data = self._chunks.popleft()
        self._pending -= len(data)
        return data

    async def _more(self) -> None:
        """Wait for a piece, or the end; a client that waits for our word to send is told to."""
        if self.gone:
            raise ClientGone
        if self.broken:
            raise StatusError(500, "", _MALFORMED)
        if self.expects_continue:
            self.expects_continue = False
            self.protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.protocol.flow.resume_reading()
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        if self.gone and not self._chunks and not self.complete:
            raise ClientGone
        if self.broken and not self._chunks:
            raise StatusError(500, "", _MALFORMED)
