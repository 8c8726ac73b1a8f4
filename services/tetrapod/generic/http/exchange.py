"""`Exchange`: one request and its answer on a connection: the body reader, the stream writer and the way to an upgrade.

Created by the connection (protocol.py) when a head is complete; its `run` is the task of the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from tetrapod.generic.http.head import render, render_trailers
from tetrapod.generic.http.refusal import panic_response, status_response
from tetrapod.generic.request import (
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
from tetrapod.machinery.status import StatusError, bad_request, request_entity_too_large

log = logging.getLogger(__name__)

HIGH_WATER: Final = 65536
"""Bytes of a request body that wait in memory before reading from the client pauses."""
UNCOPIED: Final = 32768
"""Pieces of an answer beyond this many bytes are given to TLS as they are: a copy costs more than a record of its own for the frame."""


_last_chunk: tuple[bytes, bytes] = (b"", b"")


def _chunk(data: bytes) -> bytes:
    """In HTTP's chunked form. One event goes to many watches in a row: the chunk that was made last is kept."""
    global _last_chunk
    made_of, chunk = _last_chunk
    if made_of is not data:
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        _last_chunk = (data, chunk)
    return chunk


class Front(Protocol):
    """Of the server that a connection came to."""

    date: bytes
    """The Date header's line, as it is now."""
    closing: bool
    """Answers carry `Connection: close` from now on."""


_MALFORMED: Final = "malformed chunked encoding"


class Connection(Protocol):
    """Of an HttpProtocol what its exchanges use."""

    transport: asyncio.Transport
    flow: FlowControl

    @property
    def state(self) -> Front: ...

    def finished(self, exchange: Exchange) -> None:
        """The answer is written: the next request, or the end of the connection."""
        ...

    def hijack(self) -> Hijacked:
        """Take the raw connection from the protocol."""
        ...


class Exchange:
    """It is the request's BodyReader and the answer's StreamWriter. `run` answers, once."""

    __slots__ = (
        "_chunked",
        "_chunks",
        "_gone_event",
        "_head",
        "_left",
        "_pending",
        "_waiter",
        "broken",
        "complete",
        "done",
        "ending",
        "endless",
        "expects_continue",
        "gone",
        "head_only",
        "hijacked",
        "http10",
        "keep_alive",
        "length",
        "protocol",
        "request",
        "streaming",
        "task",
    )

    def __init__(self, protocol: Connection, request: Request, *, keep_alive: bool, http10: bool) -> None:
        self.protocol = protocol
        self.request = request
        self.keep_alive = keep_alive
        self.http10 = http10
        self.head_only = request.method == "HEAD"
        self.length = -1  # Content-Length of the request, where it says so
        self.complete = False  # the whole body has arrived
        self.broken = False
        self.expects_continue = False
        self.gone = False
        self.done = False
        self.hijacked = False
        self.streaming = False
        self.endless = self.ending = False
        self.task: asyncio.Task[None] | None = None
        self._chunks: deque[bytes] = deque()
        self._pending = 0
        self._waiter: asyncio.Future[None] | None = None
        self._gone_event: asyncio.Event | None = None
        self._head = b""
        self._chunked = False
        self._left = -1  # bytes of a streamed answer with Content-Length that are still to come

    # --- from the connection

    def feed(self, data: bytes) -> None:
        if self.done:
            return
        self._chunks.append(data)
        self._pending += len(data)
        if self._pending > HIGH_WATER:
            self.protocol.flow.pause_reading()
        self._wake()

    def end_of_body(self) -> None:
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def body_breaks_off(self) -> None:
        """What came cannot be a body: whoever reads on is told so, and nothing more is read on this connection."""
        self.broken = True
        self.keep_alive = False
        self._wake()

    def client_gone(self) -> None:
        self.gone = True
        self._wake()
        if self._gone_event is not None:
            self._gone_event.set()
        if self.task is not None and (self.streaming or self.request.cancel_when_gone) and not self.done:
            self.task.cancel()

    def server_stops(self) -> None:
        """The last answer of this connection; one without an end ends now."""
        self.keep_alive = False
        if self.endless and not self.ending and self.task is not None:
            self.ending = True
            self.task.cancel()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- BodyReader

    async def read(self, limit: int) -> bytes:
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
        while not self._chunks:
            if self.complete:
                return b""
            await self._more()
        data = self._chunks.popleft()
        self._pending -= len(data)
        return data

    async def _more(self) -> None:
        if self.gone:
            raise ClientGone
        if self.broken:
            raise bad_request(_MALFORMED)
        if self.expects_continue:
            self.expects_continue = False
            self.protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.protocol.flow.resume_reading()
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        if self.gone and not self._chunks and not self.complete:
            raise ClientGone
        if self.broken and not self._chunks:
            raise bad_request(_MALFORMED)

    # --- StreamWriter

    def write(self, data: bytes) -> None:
        if self.gone or not data:
            return
        head, self._head = self._head, b""
        size = len(data)
        if size > UNCOPIED:
            transport = self.protocol.transport
            if self._chunked:
                transport.writelines((b"%b%x\r\n" % (head, size), data, b"\r\n"))
            else:
                self._left -= size
                transport.writelines((head, data) if head else (data,))
            return
        if self._chunked:
            data = _chunk(data)
        elif self._left >= 0:
            self._left -= size
        self.protocol.transport.write(head + data if head else data)

    def buffered(self) -> int:
        return self.protocol.transport.get_write_buffer_size() + len(self._head)

    async def drain(self) -> None:
        if self.protocol.flow.write_paused and not self.gone:
            await self.protocol.flow.drain()
        if self.gone:
            raise ClientGone

    @property
    def closed(self) -> bool:
        return self.gone

    async def wait_closed(self) -> None:
        if not self.gone:
            if self._gone_event is None:
                self._gone_event = asyncio.Event()
            await self._gone_event.wait()

    # --- the task

    async def run(self, handler: Handler) -> None:
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
            self._send(response)
        elif isinstance(response, StreamResponse):
            await self._stream(response)
        elif isinstance(response, UpgradeResponse):
            await self._upgrade(response)
        else:
            self._send(response)

    def _send(self, response: Response) -> None:
        status, body = response.status, response.body
        length = b"Content-Length: %d\r\n" % len(body) if status >= 200 and status not in (204, 304) else b""
        for name, _ in response.headers:
            if name == b"content-length":
                length = b""
            elif name == b"connection":
                self.keep_alive = False
        head = render(status, self.protocol.state.date, response.headers, length + self._connection(response.headers))
        self.protocol.transport.write(head if self.head_only or status in (204, 304) else head + body)
        self.done = True
        self.protocol.finished(self)

    def _connection(self, headers: HeaderList) -> bytes:
        """Decide whether the connection lives on: not if the client still sends, the server stops, or the handler says so."""
        if not self.complete or self.protocol.state.closing:
            self.keep_alive = False
        if self.keep_alive or any(name == b"connection" for name, _ in headers):
            return b""
        return b"Connection: close\r\n"

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
        for name, value in response.headers:
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection":
                self.keep_alive = False
        if self._left < 0:
            if self.http10:
                self.keep_alive = False
            elif response.status >= 200 and response.status not in (204, 304):
                self._chunked = not self.head_only
                extra = b"Transfer-Encoding: chunked\r\n"
        self._head = render(response.status, self.protocol.state.date, response.headers, extra + self._connection(response.headers))

    def _flush_head(self) -> None:
        """The head does not wait for the first write of the stream."""
        if self._head and not self.gone:
            head, self._head = self._head, b""
            self.protocol.transport.write(head)

    def _end_stream(self, trailers: HeaderList) -> None:
        if self.gone:
            return
        if self._left > 0 and not self.head_only:
            log.error("answer to %s %s ended %d bytes short", self.request.method, self.request.raw_path, self._left)
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
            self._send(panic_response())
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
        self.hijacked = self.done = True
        self._flush_head()
        return self.protocol.hijack()

    def abort(self) -> None:
        """Cut the connection, so that the client does not take what it has for the whole answer."""
        self.done = True
        if not self.gone and not self.hijacked:
            self.protocol.transport.abort()
