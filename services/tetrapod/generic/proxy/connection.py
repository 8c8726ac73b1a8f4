"""One HTTP/1.1 connection to a backend, which carries one exchange at a time and is parsed by httptools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httptools

from tetrapod.generic.http.buffered_protocol import read_buffer
from tetrapod.generic.http.transports import CLOSED_TRANSPORT
from tetrapod.generic.proxy.exchange import MAX_1XX, MAX_HEAD, READ_AHEAD, BackendError, Exchange
from tetrapod.generic.proxy.malformed_responses import (
    TOO_LARGE,
    TOO_MANY_1XX,
    malformed_body,
    malformed_head,
    malformed_status,
    unsupported_encoding,
)
from tetrapod.generic.proxy.paused_reading import pause_reading, resume_reading
from tetrapod.generic.proxy.tls_errors import lost_text


class BackendConnection(Exchange, asyncio.BufferedProtocol):
    """One HTTP/1.1 connection to a backend, as an asyncio protocol. It carries one request at a time.

    Args:
        on_idle: called with this connection when it can be used for another request.
        on_lost: called with this connection when it is lost or detached.

    Attributes:
        transport: the transport; None before it is connected.
        idle_since: the time of the event loop since which it has been idle.
        upgraded: whether the response was a 101.
        upgrade_data: the data that has arrived after a 101.
    """

    def __init__(
        self, on_idle: Callable[[BackendConnection], None], on_lost: Callable[[BackendConnection], None]
    ) -> None:
        super().__init__()
        self.transport: Any = None
        self.idle_since = 0.0
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._buffer = read_buffer()
        self._writable = asyncio.Event()
        self._writable.set()
        # Made when connected: a parser refers back, and nothing would release that of a failed connection.
        self._parser: Any = None
        self._reset("")

    def _reset(self, method: str) -> None:
        self._clear()
        self.upgrade_data = b""  # the data after a 101
        self.upgraded = False
        self._method = method
        self._active = bool(method)
        self._in_head = False
        self._head_size = 0  # bytes since the last body data: the head, trailers, and the framing between chunks
        self._informational = 0  # the number of informational responses before the final one
        self._request_sent = False
        self._chunked = False
        self._consumed = False  # whether the caller has the whole response
        self._keep_alive = False
        self._surplus = False  # whether a second response has begun, which was not requested and is ignored
        self._response_begun = False
        self._until_close = False

    # --- asking

    def begin(
        self, method: str, head: bytes, body: bytes = b"", *, all_sent: bool = True, chunked: bool = False
    ) -> None:
        """Send a request, or the beginning of it. The previous one must be complete.

        Args:
            method: the method of the request.
            head: the encoded head.
            body: the body.
            all_sent: whether that is the whole request; otherwise `send` and `end_request` follow.
            chunked: whether the rest is sent in chunks, because the head has no Content-Length.
        """
        self.used = self.idle_since > 0
        self._reset(method)
        self._request_sent, self._chunked = all_sent, chunked
        self.transport.write(head + body)

    async def send(self, data: bytes) -> None:
        if not self.lost:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            await self._writable.wait()

    def end_request(self) -> None:
        if self._chunked and not self.lost:
            self.transport.write(b"0\r\n\r\n")
        self._request_sent = True
        self._maybe_idle()

    def fail_request_body(self, error: Exception) -> None:
        if self._active:
            self._fail(BackendError(str(error)) if self.status else error)
        self.transport.abort()

    def close(self) -> None:
        self._active = False
        if self.sender is not None:
            self.sender.cancel()
        if self.transport is not None:
            self.transport.abort()

    def detach(self, protocol: asyncio.Protocol) -> None:
        self._active = False
        ended = self.lost
        if not ended:
            self.lost = True
            self._on_lost(self)
            self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if self.upgrade_data:
            protocol.data_received(self.upgrade_data)
            self.upgrade_data = b""
        if ended:
            protocol.connection_lost(None)
            return
        self._resume()
        self.transport, self._parser = CLOSED_TRANSPORT, None  # they refer back to this object

    def _pause(self) -> None:
        if not self._paused and not self.lost:
            self._paused = True
            pause_reading(self.transport)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                resume_reading(self.transport)

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
        return self._buffer if self._writer is not None else self._buffer[:READ_AHEAD]

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
            text = lost_text(exc) if exc else "unexpected EOF" if self.status else "EOF"
            self._fail(BackendError(text, no_response=not self._response_begun))

    def _fail(self, error: Exception) -> None:
        self._active = False
        super()._fail(error)

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
        self._head_arrived()

    def on_body(self, body: bytes) -> None:
        self._head_size = 0
        if not self.complete:
            self._add_body(body)

    def on_message_complete(self) -> None:
        if self.status >= 200 and not self.complete:
            self._finish()

    def _finish(self) -> None:
        self.complete = True
        if self._signal is not None:
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
