"""`Http1Exchange`: an exchange that writes its response in HTTP/1.1, and hands over the connection for upgrades."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from tetrapod.generic.http.exchange import SEND_PIECE, Exchange, ServedConnection
from tetrapod.generic.http.request import ClientGone, HeaderList, Hijacked, Request, Response
from tetrapod.generic.http.response_head import render, render_trailers

UNCOPIED: Final = 32768
"""Pieces of more than this many bytes are passed to TLS uncopied: copying costs more than a separate TLS record for the
chunk framing.
"""

_last_chunk: tuple[bytes, bytes] = (b"", b"")


def _chunk(data: bytes) -> bytes:
    """Return `data` as an HTTP chunk. The last chunk is cached, because one event is sent to many watches in a row."""
    global _last_chunk
    cached_data, chunk = _last_chunk
    if cached_data is not data:
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        _last_chunk = (data, chunk)
    return chunk


class Connection(ServedConnection, Protocol):
    """The parts of a connection (HttpProtocol) that its exchanges use."""

    transport: asyncio.Transport
    flow: FlowControl

    def resume_reading(self) -> None:
        """Read from the client again, unless received bytes wait to be parsed."""
        ...

    def finished(self, exchange: Http1Exchange) -> None:
        """Start the next request of the connection, or close it, after the response of `exchange` was written."""
        ...

    def hijack(self) -> Hijacked:
        """Detach the raw connection from the protocol and return it."""
        ...


class Http1Exchange(Exchange):
    """An exchange on an HTTP/1.1 connection (protocol.py).

    Args:
        protocol: the connection.
        request: the request.
        keep_alive: whether the connection may stay open after the response.
        http10: whether the client speaks HTTP/1.0, so that streams end with the connection instead of being chunked.
    """

    __slots__ = ("_chunked", "http10")

    protocol: Connection

    def __init__(self, protocol: Connection, request: Request, *, keep_alive: bool, http10: bool) -> None:
        super().__init__(request, keep_alive=keep_alive)
        self.protocol = protocol
        self.http10 = http10
        self._chunked = False

    # --- the request body

    def _pause_reading(self) -> None:
        self.protocol.flow.pause_reading()

    def _request_more(self) -> None:
        self.protocol.resume_reading()

    def _send_continue(self) -> None:
        self.protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # --- StreamWriter

    def write(self, data: bytes) -> None:
        """Write a piece of a streamed body, preceded by the head if it is the first.

        Do nothing after the client has gone.
        """
        if self.gone or not data:
            return
        head, self._head = self._head, b""
        size = len(data)
        if size > UNCOPIED:
            transport = self.protocol.transport
            if self._chunked:
                transport.writelines((b"%b%x\r\n" % (head, size), data, b"\r\n"))
            else:
                self._remaining -= size
                transport.writelines((head, data) if head else (data,))
            return
        if self._chunked:
            data = _chunk(data)
        elif self._remaining >= 0:
            self._remaining -= size
        self.protocol.transport.write(head + data if head else data)

    def buffered(self) -> int:
        """Return the number of bytes that are written but not yet passed to the operating system."""
        return self.protocol.transport.get_write_buffer_size() + len(self._head)

    async def drain(self) -> None:
        """Wait until the write buffer of the connection is no longer full.

        Raises:
            ClientGone: the client has closed the connection.
        """
        if self.protocol.flow.write_paused and not self.gone:
            await self.protocol.flow.drain()
        if self.gone:
            raise ClientGone

    # --- responses

    async def _send_any(self, response: Response) -> None:
        """Send a response of any size and end the exchange. A large body is written as fast as the client reads it."""
        if (head := self._send(response)) and await self._write_pieces(head, response.body):
            self._finish_response()

    def _send(self, response: Response) -> bytes:
        """Send a response whose body has at most SEND_PIECE bytes, end the exchange, and return b"".

        For a larger body, send nothing and return the encoded head.
        """
        status, body = response.status, response.body
        empty = status < 200 or status in (204, 304)
        length = b"" if empty else b"Content-Length: %d\r\n" % len(body)
        has_connection_header = False
        for name, _ in response.headers:
            if name == b"content-length":
                length = b""
            elif name == b"connection":
                has_connection_header, self.keep_alive = True, False
        head = render(
            status, self.protocol.state.date, response.headers, length + self._connection_header(has_connection_header)
        )
        if self.head_only or empty:
            self.protocol.transport.write(head)
        elif len(body) <= SEND_PIECE:
            self.protocol.transport.write(head + body)
        else:
            return head
        self._finish_response()
        return b""

    def _finish_response(self) -> None:
        self.done = True
        self.protocol.finished(self)

    async def _write_pieces(self, head: bytes, body: bytes) -> bool:
        """Write the head and a large body, waiting for the client after each SEND_PIECE bytes, and return True.

        Return False if the client closes the connection before. If the task is cancelled, the connection is aborted.
        """
        view = memoryview(body)
        self.unsent = len(body)
        self.protocol.transport.write(head)
        try:
            for start in range(0, len(body), SEND_PIECE):
                piece = view[start : start + SEND_PIECE]
                self.unsent -= len(piece)
                self.protocol.transport.write(piece)
                await self.drain()
        except ClientGone:
            return False
        except asyncio.CancelledError:
            self.abort()
            raise
        return True

    def _connection_header(self, has_header: bool) -> bytes:
        """Return the line `Connection: close` if it is needed, else b"", and update `keep_alive`.

        The connection closes if the request body is incomplete, the server stops, or the handler has set the header
        itself. As with Go, it also closes if the client expected `100 Continue` and the handler did not read the body,
        although that may have arrived.

        Args:
            has_header: the handler has set a Connection header, so no line is needed.
        """
        if not self.complete or self.expects_continue or self.protocol.state.closing:
            self.keep_alive = False
        return b"" if self.keep_alive or has_header else b"Connection: close\r\n"

    def _start_stream(self, response: Response) -> None:
        extra = b""
        has_connection_header = False
        for name, value in response.headers:
            if name == b"content-length":
                self._remaining = int(value)
            elif name == b"connection":
                has_connection_header, self.keep_alive = True, False
        if self._remaining < 0:
            if self.http10:
                self.keep_alive = False
            elif response.status >= 200 and response.status not in (204, 304):
                self._chunked = not self.head_only
                extra = b"Transfer-Encoding: chunked\r\n"
        self._head = render(
            response.status,
            self.protocol.state.date,
            response.headers,
            extra + self._connection_header(has_connection_header),
        )

    def _write_head(self, head: bytes) -> None:
        self.protocol.transport.write(head)

    def _end_stream(self, trailers: HeaderList) -> None:
        head, self._head = self._head, b""
        tail = head + render_trailers(trailers) if self._chunked else head
        if tail:
            self.protocol.transport.write(tail)
        self.streaming = False
        self._finish_response()

    def hijack(self) -> Hijacked:
        """Detach the raw connection from the HTTP protocol and return it, for an upgrade.

        The head of a stream that has begun is sent first. Apart from that, the exchange sends no response.
        """
        self.hijacked = self.done = True
        self._flush_head()
        return self.protocol.hijack()

    def abort(self) -> None:
        """Abort the connection, so that the client does not mistake a partial response for a complete one.

        Do nothing if the client has gone or the connection was hijacked.
        """
        self.done = True
        if not self.gone and not self.hijacked:
            self.protocol.transport.abort()
