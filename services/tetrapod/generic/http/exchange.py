"""`Exchange`: one request and its answer on a connection: the stream writer and the way to an upgrade; the body is in body.py.

Created by the connection (protocol.py) when a head is complete; its `run` is the task of the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final, Protocol

from tetrapod.generic.http.body import Carrier, IncomingBody
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
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

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


class Connection(Carrier, Protocol):
    """Of an HttpProtocol what its exchanges use."""

    @property
    def state(self) -> Front:
        """Of the whole server."""
        ...

    def finished(self, exchange: Exchange) -> None:
        """The answer is written: the next request, or the end of the connection."""
        ...

    def hijack(self) -> Hijacked:
        """Take the raw connection from the protocol."""
        ...


class Exchange(IncomingBody):
    """It is the request's BodyReader and the answer's StreamWriter. `run` answers, once."""

    __slots__ = (
        "_chunked",
        "_gone_event",
        "_head",
        "_left",
        "ending",
        "endless",
        "head_only",
        "hijacked",
        "http10",
        "request",
        "streaming",
        "task",
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
        self.task: asyncio.Task[None] | None = None
        self._chunks: deque[bytes] = deque()
        self._pending = 0
        self._waiter: asyncio.Future[None] | None = None
        self._gone_event: asyncio.Event | None = None
        self._head = b""
        self._chunked = False
        self._left = -1  # bytes of a streamed answer with Content-Length that are still to come

    # --- from the connection

    def client_gone(self) -> None:
        """Whoever waits for him is told, and what is done for him alone is cancelled."""
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

    # --- StreamWriter

    def write(self, data: bytes) -> None:
        """A piece of a stream, at once; large ones are not copied."""
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
        """Bytes that the client has not taken yet."""
        return self.protocol.transport.get_write_buffer_size() + len(self._head)

    async def drain(self) -> None:
        """Until the client has taken enough. Raises ClientGone."""
        if self.protocol.flow.write_paused and not self.gone:
            await self.protocol.flow.drain()
        if self.gone:
            raise ClientGone

    @property
    def closed(self) -> bool:
        """Whether the client has gone."""
        return self.gone

    async def wait_closed(self) -> None:
        """Until the client has gone."""
        if not self.gone:
            if self._gone_event is None:
                self._gone_event = asyncio.Event()
            await self._gone_event.wait()

    # --- the task

    async def run(self, handler: Handler) -> None:
        """Ask the handler, and write what it answers; what it fails at is logged, and a 500."""
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
        empty = status < 200 or status in (204, 304)
        length = b"" if empty else b"Content-Length: %d\r\n" % len(body)
        told = False
        for name, _ in response.headers:
            if name == b"content-length":
                length = b""
            elif name == b"connection":
                told, self.keep_alive = True, False
        head = render(status, self.protocol.state.date, response.headers, length + self._connection(told))
        self.protocol.transport.write(head if self.head_only or empty else head + body)
        self.done = True
        self.protocol.finished(self)

    def _connection(self, told: bool) -> bytes:
        """Decide whether the connection lives on: not if the client still sends, the server stops, or the handler has `told` so."""
        if not self.complete or self.protocol.state.closing:
            self.keep_alive = False
        return b"" if self.keep_alive or told else b"Connection: close\r\n"

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
        told = False
        for name, value in response.headers:
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection":
                told, self.keep_alive = True, False
        if self._left < 0:
            if self.http10:
                self.keep_alive = False
            elif response.status >= 200 and response.status not in (204, 304):
                self._chunked = not self.head_only
                extra = b"Transfer-Encoding: chunked\r\n"
        self._head = render(response.status, self.protocol.state.date, response.headers, extra + self._connection(told))

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
        """The raw connection, for whoever upgrades: nothing more of HTTP is spoken on it here."""
        self.hijacked = self.done = True
        self._flush_head()
        return self.protocol.hijack()

    def abort(self) -> None:
        """Cut the connection, so that the client does not take what it has for the whole answer."""
        self.done = True
        if not self.gone and not self.hijacked:
            self.protocol.transport.abort()
