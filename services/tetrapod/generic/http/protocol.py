"""`HttpProtocol`: one client connection. uvicorn's httptools protocol, made to use our `Request` instead of ASGI.

It does without a scope dictionary and receive/send round trips, and one timer checks all idle connections (measured).
Beyond uvicorn it keeps the bytes that follow an upgrade, hands over the raw connection, knows the client's certificate,
accepts any method token, limits heads, and answers malformed requests with Go's texts. This file depends on uvicorn's
internals: pyproject.toml limits its version, and tests/e2e/test_packaging.py tries the lowest and the highest.

receiving.py passes the bytes that arrive to the parser.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httptools
from uvicorn.config import Config

from tetrapod.generic.http.client_verification import SAME_USER, VerificationResult, verification_result
from tetrapod.generic.http.connection_state import BACKLOGGED, CLOSED, HIJACKED, OPEN, UPGRADING
from tetrapod.generic.http.head_validation import framing_lines, validate_headers
from tetrapod.generic.http.http1_exchange import Http1Exchange
from tetrapod.generic.http.limits import WITHIN_LIMITS, excess
from tetrapod.generic.http.receiving import ReceivingProtocol
from tetrapod.generic.http.request import Hijacked, Request
from tetrapod.generic.http.request_target import parse_target
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http.timeouts import HEAD_TIMEOUT, IDLE_TIMEOUT, LINGER
from tetrapod.generic.http.transports import CLOSED_TRANSPORT, HijackedConnection
from tetrapod.generic.http.unix_sockets import is_unix

WRITE_BUFFER: Final = 64 << 10
"""Bytes of a response that wait in a connection before writing pauses; the transport under TLS holds one piece
(SEND_PIECE) more.
"""


class HttpProtocol(ReceivingProtocol):
    """One client connection: parses requests and writes their responses in order, one request at a time.

    Attributes:
        verification: the result of verifying the client certificate.
        last_user: the name of the user whose request was answered last.
    """

    def __init__(
        self,
        config: Config,
        server_state: HttpServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.access_log = False
        self.verification = VerificationResult()
        self.last_user = ""

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(WRITE_BUFFER)
        self.parser = httptools.HttpRequestParser(self)
        # As in uvicorn, a last request may have others behind it.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.remote = self.client[0] if self.client else ""
        ssl_object = transport.get_extra_info("ssl_object")
        if ssl_object is not None:
            self.verification = verification_result(ssl_object)
        elif is_unix(transport):  # NegotiatedProtocol serves no other user there
            self.verification = SAME_USER

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection_state = CLOSED
        self.state.unread.resumed(self)
        self.connections.discard(self)
        for exchange in (self.exchange, *self.waiting):
            if exchange is not None and not exchange.done:
                exchange.client_gone()
        self.waiting.clear()
        if self.flow is not None:
            self.flow.resume_writing()
        self.parser = None  # type: ignore[assignment]
        self.exchange = None

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self.state.unread.stalled(self, self.loop.time())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.state.unread.resumed(self)
        if self.exchange is None and self.connection_state is not CLOSED and self.connection_state is not HIJACKED:
            self.idle_since = self.loop.time()
            self._proceed()

    # --- unread responses (a LimitedConnection of unread_responses.py)

    def unread(self) -> int:
        """Return the number of bytes of responses that are in memory because the client has not read them."""
        size: int = self.transport.get_write_buffer_size()
        return size + (self.exchange.unsent if self.exchange is not None else 0)

    def user(self) -> str:
        """Return the name of the user whose request is in flight, or else of the last request's user."""
        return self.exchange.request.user.name if self.exchange is not None else self.last_user

    def abort_connection(self) -> None:
        """Close the connection at once, without sending the rest of the response."""
        self.transport.abort()

    # --- the parser's side

    def on_message_begin(self) -> None:
        if self.skipping_head:
            return
        self.url = b""
        self.headers = []
        self.in_head = True
        self.head_size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # else a trailer, or a head seen before
            self.headers.append((name.lower(), value.rstrip(b" \t")))  # the parser strips leading spaces

    def on_headers_complete(self) -> None:
        if self.skipping_head:
            self.skipping_head = False
            return
        self.in_head = False
        self.framing_size = 0
        self.head_since = 0.0
        if self.connection_state is CLOSED:
            return
        if self.head_size + self.piece_size > WITHIN_LIMITS and excess(self.url, self.headers):
            self._reject_oversized_head()
            return
        target = parse_target(self.url)
        if target is None:
            self.reject(400, "Bad Request")
            return
        parser = self.parser
        version = parser.get_http_version()
        method = self.method or parser.get_method().decode("ascii")
        self.method = ""
        if self.spaced and not self.has_single_spaces(method):
            self.reject(400, "Bad Request")
            return
        request = Request(
            method, target.path, raw_path=target.raw_path, query_string=target.query, headers=self.headers
        )
        request.http_version = version
        exchange = Http1Exchange(
            self, request, keep_alive=version != "1.0" and parser.should_keep_alive(), http10=version == "1.0"
        )
        if (rejection := validate_headers(exchange, self.state.date)) is not None:
            self._reject_with(rejection)
            return
        exchange.connect_request(self.remote, self.scheme or "http", self.verification)
        if parser.should_upgrade() and method != "CONNECT" and not self.waiting:
            request.upgrade = exchange.hijack
        if self.exchange is None and not self.flow.write_paused:
            self._start(exchange)
        else:
            self.flow.pause_reading()
            self.waiting.append(exchange)

    def _start_known(self, data: bytes) -> bool:
        found = None if self.flow.write_paused else self.known_heads.find(data)
        if found is None:
            return False
        method, target, audit_id, head = found
        request = Request(
            method, target.path, raw_path=target.raw_path, query_string=target.query, headers=head.headers
        )
        request.head, request.audit_id = head, audit_id
        exchange = Http1Exchange(self, request, keep_alive=True, http10=False)
        exchange.complete = True
        exchange.connect_request(self.remote, self.scheme or "http", self.verification)
        self.head_since = 0.0
        self.exchange = exchange
        return True

    def on_body(self, body: bytes) -> None:
        self.framing_size = -1
        self.chunks += 1
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if exchange is not None:
            exchange.feed(body)

    def on_message_complete(self) -> None:
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if exchange is not None and not self.parser.should_upgrade():
            exchange.end_of_body()

    # --- exchanges

    def _start(self, exchange: Http1Exchange) -> None:
        self.exchange = exchange
        if not self.parsing:
            exchange.start(self.loop)

    def finished(self, exchange: Http1Exchange) -> None:
        """Start the next request, or close the connection, after the response of `exchange` was written.

        If the write buffer is full because the client does not read the response, the next request starts when it has
        drained.
        """
        self.exchange = None
        if self.connection_state is CLOSED or self.transport.is_closing():
            return
        if not exchange.keep_alive:
            self._close(linger=not exchange.complete)
            return
        self.idle_since = self.loop.time()
        if self.flow.write_paused:
            self.last_user = exchange.request.user.name
            self.flow.pause_reading()
        else:
            self._proceed()

    def _proceed(self) -> None:
        """Continue after a response, once the write buffer is no longer full.

        Start the next request, if one is waiting, and parse received bytes that were kept until then. If no request is
        waiting then, resume reading.
        """
        if self.waiting:
            self._start(self.waiting.popleft())
        elif self.connection_state is UPGRADING:  # the handler has answered without taking the connection
            self.connection_state = OPEN
            data, self.upgrade_data = bytes(self.upgrade_data), bytearray()
            self.parser = httptools.HttpRequestParser(self)
            if data:
                self.data_received(data)
        if self.connection_state is BACKLOGGED and not self.waiting:
            self.connection_state = OPEN
            data, self.backlog = self.backlog, b""
            self.data_received(data)
        if not self.waiting and self.connection_state is not CLOSED:
            self.flow.resume_reading()

    def _begin_upgrade(self, data: bytes) -> None:
        """Handle the end of an upgrade request's head, after which llhttp stops parsing.

        The handler may hijack the connection or send a normal response. An upgrade request with a body is handled as a
        normal request.

        Args:
            data: the bytes that follow the head.
        """
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if self.connection_state is CLOSED or exchange is None:
            return
        framing = framing_lines(exchange.request.headers)
        if framing is None:
            self.connection_state = UPGRADING
            self.upgrade_data = bytearray(data)
            exchange.end_of_body()
            return
        exchange.request.upgrade = None  # no client of upgrades sends a body
        self.parser = httptools.HttpRequestParser(self)
        self.skipping_head = True
        self.data_received(b"POST / HTTP/1.1\r\n" + framing + b"\r\n" + data)

    def hijack(self) -> Hijacked:
        self.connection_state = HIJACKED
        early, self.upgrade_data = bytes(self.upgrade_data), bytearray()
        self.connections.discard(self)
        self.exchange = None
        self.flow.resume_reading()
        self.transport.pause_reading()
        self.parser = None  # type: ignore[assignment]  # the two refer to each other, and `connection_lost` goes to another protocol
        self.hijacked = HijackedConnection(self.transport, early, self._release)
        self.state.upgraded.add(self.transport)
        return self.hijacked

    def _release(self) -> None:
        """Drop the references to the connection after another protocol has taken it over.

        uvloop's TLS transport refers back to this protocol, so they would form a reference cycle (see transports.py).
        """
        self.connection_state = CLOSED
        self.transport, self.flow, self.hijacked = CLOSED_TRANSPORT, None, None  # type: ignore[assignment]

    def _reject_with(self, response: bytes) -> None:
        if self.connection_state is CLOSED:
            return
        if self.exchange is None:
            self.transport.write(response)
        self._close(linger=True)

    def _close(self, *, linger: bool) -> None:
        """Close the connection.

        Args:
            linger: first read and drop for LINGER seconds what the client is still sending.
        """
        self.in_head = False
        if not linger:
            self.transport.close()
            return
        self.connection_state = CLOSED
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    # --- the server's side

    @property
    def idle(self) -> bool:
        """Whether no request is handled."""
        return self.exchange is None

    def requests(self) -> list[Request]:
        """Return the request that is handled, if there is one."""
        return [self.exchange.request] if self.exchange is not None else []

    def check_idle(self, now: float) -> None:
        """Close the connection if it had no request for IDLE_TIMEOUT, or if a head is incomplete after HEAD_TIMEOUT.

        The server calls this every few seconds.

        Args:
            now: the time of the event loop.
        """
        if self.exchange is not None or self.connection_state is CLOSED or self.flow.write_paused:
            return
        if self.head_since:
            if now - self.head_since > HEAD_TIMEOUT:
                self.transport.close()
        elif now - self.idle_since > IDLE_TIMEOUT:
            self.transport.close()

    def shutdown(self) -> None:
        """Close the connection now, or after the response of the request in flight. A watch in flight is ended."""
        if self.exchange is None:
            self.transport.close()
        else:
            self.exchange.server_stops()
