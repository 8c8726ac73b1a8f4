"""One connection to a backend, which carries one exchange at a time and is parsed by httptools.

The body of a response is either read by the caller (`chunk`, `read`) or piped into a client's `StreamWriter` as it
arrives. In both cases reading from the backend pauses while too much data is buffered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import httptools

from tetrapod.generic.http.buffered_protocol import read_buffer
from tetrapod.generic.http.request import HeaderList, StreamWriter
from tetrapod.generic.http.transports import CLOSED_TRANSPORT
from tetrapod.generic.proxy.malformed_responses import (
    TOO_LARGE,
    TOO_MANY_1XX,
    malformed_body,
    malformed_head,
    malformed_status,
    unsupported_encoding,
)
from tetrapod.machinery.failure import Failure

HIGH_WATER: Final = 256 * 1024
PIECE: Final = 256 * 1024
"""The number of bytes that are piped before the client's writer is awaited, so that other tasks of the event loop can
run.
"""
UNASKED: Final = 64 * 1024
"""The number of bytes of a body that are read before the caller requests it."""
MAX_HEAD: Final = 10 << 20
"""The maximum size of a response's headers, and of its trailers (net/http: Transport.MaxResponseHeaderBytes)."""
MAX_1XX: Final = 5
"""The maximum number of informational responses before the final one (net/http before Go 1.23: max1xxResponses)."""


class BackendError(Exception):
    """The backend could not be reached, the connection broke, or the response is malformed. The text is Go's.

    Attributes:
        no_response: whether no byte of a response had arrived.
        unsent: whether nothing was sent either.
    """

    def __init__(self, message: str, *, no_response: bool = False, unsent: bool = False) -> None:
        super().__init__(message)
        self.no_response = no_response
        self.unsent = unsent


class BackendConnection(asyncio.BufferedProtocol):
    """One connection to a backend, as an asyncio protocol. It carries one request at a time.

    Args:
        on_idle: called when the connection can be used for another request.
        on_lost: called when the connection is lost or detached.

    Attributes:
        transport: the transport; None before it is connected.
        idle_since: the time of the event loop since which it has been idle.
        used: whether it has carried an exchange before.
        lost: whether the connection is lost.
        sender: the task that sends the body of the request; None if no such task is running.
        status: the status code of the response; 0 before its head has arrived.
        headers: the headers of the response.
        trailers: the trailers of the response.
        complete: whether the whole response has arrived.
        upgraded: whether the response was a 101.
        upgrade_data: the data that has arrived after a 101.
    """

    def __init__(
        self, on_idle: Callable[[BackendConnection], None], on_lost: Callable[[BackendConnection], None]
    ) -> None:
        self.transport: Any = None
        self.idle_since = 0.0
        self.used = False  # whether it has carried an exchange before
        self.lost = False
        self.sender: asyncio.Task[None] | None = None  # the task that still sends the body of the request
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._buffer = read_buffer()
        self._writable = asyncio.Event()
        self._writable.set()
        # Made when connected: a parser refers back, and nothing would release that of a failed connection.
        self._parser: Any = None
        self._reset("")

    def _reset(self, method: str) -> None:
        self.status = 0
        self.headers: HeaderList = []
        self.trailers: HeaderList = []
        self.complete = False
        self.upgrade_data = b""  # the data after a 101
        self.upgraded = False
        self._method = method
        self._active = bool(method)
        self._in_head = False
        self._head_size = 0  # bytes since the last body data: the head, trailers, and the framing between chunks
        self._informational = 0  # the number of informational responses before the final one
        self._request_sent = False
        self._consumed = False  # whether the caller has the whole response
        self._keep_alive = False
        self._surplus = False  # whether a second response has begun, which was not requested and is ignored
        self._response_begun = False
        self._until_close = False
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._error: Failure[Exception] | None = None
        self._writer: StreamWriter | None = None
        self._pieces: list[bytes] = []  # of the body in the received data that is being parsed, for the writer
        self._piped = 0  # the number of bytes since the writer was last awaited
        self._head: asyncio.Future[None] | None = None
        self._signal: asyncio.Future[None] | None = None

    # --- asking

    def begin(self, method: str, head: bytes, body: bytes = b"", *, all_sent: bool = True) -> None:
        """Send a request, or the beginning of it. The previous one must be complete.

        Args:
            method: the method of the request.
            head: the encoded head.
            body: the body, or its beginning.
            all_sent: whether that is the whole request; otherwise `send` and `sent` follow.
        """
        self.used = self.idle_since > 0
        self._reset(method)
        self._request_sent = all_sent
        self._head = self._loop.create_future()
        self.transport.write(head + body)

    async def send(self, data: bytes) -> None:
        """Send a part of the request body, and wait while the transport's buffer is full.

        Do nothing if the connection is lost.
        """
        if not self.lost:
            self.transport.write(data)
            await self._writable.wait()

    def sent(self) -> None:
        """Mark the request as completely sent, so that the connection can be used again."""
        self._request_sent = True
        self._maybe_idle()

    async def wait_for_head(self) -> None:
        """Wait until `status` and `headers` of the response are set.

        Raises:
            BackendError: the connection broke or the response is malformed.
            Exception: reading the body of the request failed with this error.
        """
        assert self._head is not None
        await self._head
        if self.status == 0:
            raise self._error.error() if self._error is not None else BackendError("no answer")

    async def read(self, limit: int = 1 << 30) -> bytes:
        """Return the whole body, or the rest of it.

        Raises:
            BackendError: the connection broke, or the body is larger than `limit` bytes.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                self.close()
                raise BackendError(f"the answer is larger than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def chunk(self) -> bytes:
        """Wait for the next piece of the body and return it; b"" at its end.

        Raises:
            BackendError: the connection broke.
        """
        while not self._chunks:
            if self.complete:
                self._release()
                return b""
            if self._error is not None:
                raise self._error.error()
            self._resume()
            await self._wait()
        data = self._chunks.popleft()
        self._size -= len(data)
        return data

    def complete_body(self) -> bytes | None:
        """Return the body, or what the caller has not read of it, if its end has arrived; otherwise None.

        The body is then read to its end, so the connection may carry another request.
        """
        if not self.complete:
            return None
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._release()
        return data

    async def pipe(self, writer: StreamWriter) -> None:
        """Write the body to `writer` as it arrives, and return at its end.

        Reading from the backend pauses while the writer's buffer is full.

        Raises:
            BackendError: the connection broke.
        """
        if self._chunks:
            writer.write(b"".join(self._chunks))
            self._chunks.clear()
        self._size = 0
        self._writer = writer
        while not self.complete:
            if self._error is not None:
                raise self._error.error()
            if self._paused:
                self._piped = 0
                await writer.drain()
                self._resume()
            else:
                await self._wait()
        self._release()

    def fail_request_body(self, error: Exception) -> None:
        """Abort the connection because the rest of the request body cannot be read.

        `wait_for_head` then raises `error`; after the head, reading the response raises a BackendError.
        """
        if self._active:
            self._fail(BackendError(str(error)) if self.status else error)
        self.transport.abort()

    def close(self) -> None:
        """Abort the connection. The response can no longer be read."""
        self._active = False
        if self.sender is not None:
            self.sender.cancel()
        if self.transport is not None:
            self.transport.abort()

    def detach(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the transport after a 101. It first receives the data that has already arrived."""
        self._active = False
        self.lost = True
        self._on_lost(self)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if self.upgrade_data:
            protocol.data_received(self.upgrade_data)
            self.upgrade_data = b""
        self._resume()
        self.transport, self._parser = CLOSED_TRANSPORT, None  # they refer back to this object

    async def _wait(self) -> None:
        self._signal = self._loop.create_future()
        await self._signal

    def _wake(self) -> None:
        signal, self._signal = self._signal, None
        if signal is not None and not signal.done():
            signal.set_result(None)

    def _pause(self) -> None:
        if not self._paused and not self.lost:
            self._paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._parser = httptools.HttpResponseParser(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def eof_received(self) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer if self._writer is not None else self._buffer[:UNASKED]

    def buffer_updated(self, nbytes: int) -> None:
        self._received(self._buffer[:nbytes])

    def _received(self, data: memoryview) -> None:
        """Parse received data. `data` is a part of the shared buffer, so everything that is kept must be copied.

        The parser copies the body. Data after an upgrade is copied here.
        """
        if self.upgraded:
            self.upgrade_data += bytes(data)
            return
        if not self._active:
            self.transport.abort()  # data without a request
            return
        self._response_begun = True
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.upgrade_data += bytes(data[upgrade.args[0] :])
            self._pause()
        except httptools.HttpParserError as error:
            self._fail(
                BackendError(malformed_body(str(error)) if self.status else malformed_head(bytes(data), str(error)))
            )
            self.transport.abort()
        if self._pieces:
            self._write_pieces()
        if self._head_size > MAX_HEAD and self._active and not self.complete:
            self._fail(BackendError(TOO_LARGE.format(MAX_HEAD)))
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._writable.set()
        self._on_lost(self)
        self.transport, self._parser = CLOSED_TRANSPORT, None  # they refer back to this object
        if self._active and self._until_close and exc is None:
            self.on_message_complete()
        elif self._active:
            text = f"connection lost: {exc}" if exc else "unexpected EOF" if self.status else "EOF"
            self._fail(BackendError(text, no_response=not self._response_begun))

    def _fail(self, error: Exception) -> None:
        self._active = False
        self._error = Failure(error)
        if self._head is not None and not self._head.done():
            self._head.set_result(None)
        self._wake()

    # --- the parser's side

    def on_message_begin(self) -> None:
        if self.complete:
            self._surplus = True
            self._keep_alive = self._active = False
            self.transport.close()
            return
        self._in_head = True
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._surplus:
            return
        if self._in_head:
            self.headers.append((name.lower(), value))
        else:
            self.trailers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._surplus or self._error is not None:
            return
        self._in_head = False
        status = self._parser.get_status_code()
        error_text = malformed_status(status)
        framed = False
        for name, value in self.headers:
            if name == b"content-length":
                framed = True
            elif name == b"transfer-encoding":
                framed = True
                error_text = error_text or unsupported_encoding(value)
        informational = 100 <= status < 200 and status != 101
        if informational:
            self._informational += 1
            if self._informational > MAX_1XX:
                error_text = error_text or TOO_MANY_1XX
        else:
            self._head_size = 0
        if error_text:
            self._fail(BackendError(error_text))
            self.transport.abort()
            return
        if informational:
            return
        self.status = status
        self._keep_alive = self._parser.should_keep_alive()
        if status == 101:
            self.upgraded = True
        elif self._method == "HEAD":
            self._finish()
            self._parser = httptools.HttpResponseParser(self)
        elif not framed and status not in (204, 304):
            self._until_close = True
            self._keep_alive = False
        if self._head is not None and not self._head.done():
            self._head.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._head_size = 0
        if self.complete:
            return
        if self._writer is not None:
            self._pieces.append(body)
            return
        self._chunks.append(body)
        self._size += len(body)
        if self._size >= UNASKED:
            self._pause()
        self._wake()

    def _write_pieces(self) -> None:
        """Write the body in the received data at once, however many chunks it came in."""
        assert self._writer is not None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._writer.write(body)
        self._piped += len(body)
        if self._piped > PIECE or self._writer.buffered() > HIGH_WATER:
            self._pause()
            self._wake()

    def on_message_complete(self) -> None:
        if self.status >= 200 and not self.complete:
            self._finish()

    def _finish(self) -> None:
        self.complete = True
        self._wake()
        if not self._request_sent:  # the response did not wait for the whole request
            self._keep_alive = False
            if self.sender is not None:
                self.sender.cancel()
        if not self._keep_alive or self.lost:
            self._active = False
            if not self.lost:
                self.transport.close()
        else:
            self._maybe_idle()

    def _release(self) -> None:
        self._consumed = True
        self._maybe_idle()

    def _maybe_idle(self) -> None:
        """Call `on_idle` if the connection can be used again.

        Request and response must be complete, the caller must have read the response, and the server must keep the
        connection open.
        """
        if (
            self.complete
            and self._consumed
            and self._request_sent
            and self._keep_alive
            and self._active
            and not self.transport.is_closing()
        ):
            self._active = False
            self._resume()
            self.idle_since = self._loop.time()
            self._on_idle(self)
