"""`Exchange`: one request and its response on a connection.

The connection (protocol.py) creates it once the request's head is complete, and starts `run` as the task of the
request. It writes responses, streams and upgrades. Reading the request body is implemented by its base class in
body.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final, Protocol

from tetrapod.generic.http.body import Carrier, IncomingBody
from tetrapod.generic.http.error_responses import panic_response, status_response
from tetrapod.generic.http.loop_monitor import LoopMonitor
from tetrapod.generic.http.request import (
    AnswerBroken,
    ClientGone,
    Handler,
    HeaderList,
    Hijacked,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from tetrapod.generic.http.response_head import render, render_trailers
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

UNCOPIED: Final = 32768
"""Pieces of more than this many bytes are passed to TLS uncopied: copying costs more than a separate TLS record for the
chunk framing.
"""

SEND_PIECE: Final = 128 << 10
"""Larger bodies are written in pieces of this many bytes, each after the client has read enough of the previous
ones.
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


class SharedState(Protocol):
    """The state of a server that all its connections use."""

    date: bytes
    """The current Date header line."""
    closing: bool
    """The server is shutting down: responses carry `Connection: close`."""
    monitor: LoopMonitor


class Connection(Carrier, Protocol):
    """The parts of a connection (HttpProtocol) that its exchanges use."""

    @property
    def state(self) -> SharedState:
        """The state that all connections of the server share."""
        ...

    def finished(self, exchange: Exchange) -> None:
        """Start the next request of the connection, or close it, after the response of `exchange` was written."""
        ...

    def hijack(self) -> Hijacked:
        """Detach the raw connection from the protocol and return it."""
        ...


class Exchange(IncomingBody):
    """One request and its response: the BodyReader of the request and the StreamWriter of a streamed response.

    `run` handles the request and sends the response; it is called once.
    """

    __slots__ = (
        "_chunked",
        "_gone_event",
        "_head",
        "_remaining",
        "ending",
        "endless",
        "head_only",
        "hijacked",
        "http10",
        "request",
        "streaming",
        "task",
        "unsent",
    )

    protocol: Connection

    def __init__(self, protocol: Connection, request: Request, *, keep_alive: bool, http10: bool) -> None:
        self.protocol = protocol
        self.request = request
        self.keep_alive = keep_alive
        self.http10 = http10
        self.head_only = request.method == "HEAD"
        self.length = -1
        self.complete = False
        self.broken = False
        self.expects_continue = False
        self.gone = False
        self.done = False
        self.hijacked = False
        self.streaming = False
        self.endless = self.ending = False
        self.unsent = 0
        """Bytes of the response body in memory that are not written yet."""
        self.task: asyncio.Task[None] | None = None
        self._chunks: deque[bytes | bytearray] = deque()
        self._pending = 0
        self._waiter: asyncio.Future[None] | None = None
        self._gone_event: asyncio.Event | None = None
        self._head = b""
        self._chunked = False
        self._remaining = -1  # remaining bytes of a streamed response with Content-Length

    # --- from the connection

    def client_gone(self) -> None:
        """Record that the client closed the connection, and wake everything that waits for the client.

        The task is cancelled if it streams, or if the request has `cancel_when_gone`.
        """
        self.gone = True
        self._wake()
        if self._gone_event is not None:
            self._gone_event.set()
        if self.task is not None and (self.streaming or self.request.cancel_when_gone) and not self.done:
            self.task.cancel()

    def server_stops(self) -> None:
        """Close the connection after this response. An endless stream, such as a watch, is cancelled and ends now."""
        self.keep_alive = False
        if self.endless and not self.ending and self.task is not None:
            self.ending = True
            self.task.cancel()

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
        """Wait until the write buffer has drained enough. Raises ClientGone if the client has closed the connection."""
        if self.protocol.flow.write_paused and not self.gone:
            await self.protocol.flow.drain()
        if self.gone:
            raise ClientGone

    @property
    def closed(self) -> bool:
        """Whether the client has closed the connection."""
        return self.gone

    async def wait_closed(self) -> None:
        """Wait until the client has closed the connection."""
        if not self.gone:
            if self._gone_event is None:
                self._gone_event = asyncio.Event()
            await self._gone_event.wait()

    # --- the task

    async def run(self, handler: Handler) -> None:
        """Handle the request and send the response.

        The time of each step of the event loop is measured (loop_monitor.py).
        """
        try:
            await self.protocol.state.monitor.measured(self.request, self._answer(handler))
        finally:
            self.request.release_connection()

    async def _answer(self, handler: Handler) -> None:
        """Call the handler and send its response.

        A StatusError becomes a Status; any other exception is logged and becomes a 500.
        """
        try:
            response = await handler(self.request)
        except StatusError as error:
            response = status_response(error)
        except asyncio.CancelledError:
            self.abort()
            if self.gone:
                return
            raise
        except ClientGone:
            self.abort()
            return
        except Exception:
            log.exception("handler of %s %s failed", self.request.method, self.request.raw_path)
            response = panic_response()
        if self.hijacked or self.gone:
            return
        if type(response) is Response:
            if len(response.body) <= SEND_PIECE:
                self._send(response)
            else:
                await self._send_any(response)
        elif isinstance(response, StreamResponse):
            await self._stream(response)
        elif isinstance(response, UpgradeResponse):
            await self._upgrade(response)
        else:
            await self._send_any(response)

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
        """Write the head and a large body as fast as the client reads it.

        Return False if the client closed the connection.
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
        itself.

        Args:
            has_header: the handler has set a Connection header, so no line is needed.
        """
        if not self.complete or self.protocol.state.closing:
            self.keep_alive = False
        return b"" if self.keep_alive or has_header else b"Connection: close\r\n"

    async def _stream(self, response: StreamResponse) -> None:
        self._start_stream(response)
        if not self.head_only and response.status not in (204, 304):
            self.streaming, self.endless = True, response.endless
            asyncio.get_running_loop().call_soon(self._flush_head)
            try:
                await response.run(self)
            except asyncio.CancelledError:
                if not self.ending or self.gone:
                    self.abort()
                    if self.gone:
                        return
                    raise
            except (ClientGone, AnswerBroken):
                self.abort()
                return
            except Exception:
                log.exception("stream of %s %s failed", self.request.method, self.request.raw_path)
                self.abort()
                return
        self._end_stream(response.trailers)

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

    def _flush_head(self) -> None:
        """Send the head of a stream now, if it has not been sent with the first write."""
        if self._head and not self.gone:
            head, self._head = self._head, b""
            self.protocol.transport.write(head)

    def _end_stream(self, trailers: HeaderList) -> None:
        if self.gone:
            return
        if self._remaining > 0 and not self.head_only:
            log.error(
                "response to %s %s ended %d bytes short", self.request.method, self.request.raw_path, self._remaining
            )
            self.abort()
            return
        head, self._head = self._head, b""
        tail = head + render_trailers(trailers) if self._chunked else head
        if tail:
            self.protocol.transport.write(tail)
        self.done = True
        self.streaming = False
        self.protocol.finished(self)

    async def _upgrade(self, response: UpgradeResponse) -> None:
        if self.request.upgrade is None:
            await self._send_any(panic_response())
            return
        hijacked = self.hijack()
        try:
            await response.run(hijacked)
        except ClientGone:
            pass
        except Exception:
            log.exception("upgraded connection of %s %s failed", self.request.method, self.request.raw_path)
        finally:
            with contextlib.suppress(Exception):
                hijacked.transport.close()

    def hijack(self) -> Hijacked:
        """Detach the raw connection from the HTTP protocol and return it, for an upgrade.

        No response is sent by the exchange.
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
