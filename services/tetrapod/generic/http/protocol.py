"""`HttpProtocol`: one client connection. uvicorn's httptools protocol, made to speak our `Request` instead of ASGI.

Measured: no scope dictionary, no receive/send round trips, one timer for all idle connections. Beyond stock uvicorn it keeps the
bytes that follow an upgrade, hands over the raw connection, knows the client's certificate, takes any method token, limits heads,
and answers malformed requests with Go's texts. uvicorn is pinned; this file depends on its internals.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tetrapod.generic.http.closed import CLOSED
from tetrapod.generic.http.exchange import Exchange
from tetrapod.generic.http.limits import MAX_AROUND_BODY, MAX_HEAD, MAX_HEADERS, WITHIN_LIMITS, excess
from tetrapod.generic.http.loop_monitor import NOTICED, LoopMonitor
from tetrapod.generic.http.mistrust import VerificationResult, verification_result
from tetrapod.generic.http.refusal import bad_request, expectation_failed, too_large
from tetrapod.generic.http.target import parse_target, valid_host
from tetrapod.generic.http.unread import UnreadResponses
from tetrapod.generic.request import Handler, HeaderList, Hijacked, Request
from tetrapod.generic.scheduling.eager import start_eagerly

HEAD_TIMEOUT: Final = 32.0
IDLE_TIMEOUT: Final = 90.0
WRITE_BUFFER: Final = 64 << 10
"""Bytes of a response that wait in a connection before writing pauses; the transport under TLS holds one piece (SEND_PIECE) more."""
LINGER: Final = 0.5
MAX_EARLY: Final = 1 << 20
_SLICE: Final = 16 << 10
"""Bytes of heads that are parsed between two looks at the limits."""
_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")


class HttpServerState(ServerState):
    """The state that all connections of one server share."""

    def __init__(self, handler: Handler, contended: Callable[[], bool], step_warning: float) -> None:
        super().__init__()
        self.handler = handler
        self.monitor = LoopMonitor(step_warning, self.in_flight)
        self.contended = contended
        self.date = b""
        self.closing = False
        """The server is shutting down: responses carry `Connection: close`."""
        self.upgraded: set[asyncio.BaseTransport] = set()
        self.unread = UnreadResponses()

    def forget_closed(self) -> None:
        """Release upgraded connections that have ended: each has a buffer of 256 kB."""
        self.upgraded = {transport for transport in self.upgraded if not transport.is_closing()}

    def in_flight(self) -> list[Request]:
        """Return the requests that are being handled, the oldest first."""
        exchanges = (getattr(connection, "exchange", None) for connection in self.connections)
        return sorted((exchange.request for exchange in exchanges if exchange is not None), key=lambda request: request.received)


class HijackedConnection:
    """A connection taken from the HTTP protocol. Nothing is read from it until `take_over`."""

    def __init__(self, transport: asyncio.Transport, early: bytes, on_taken_over: Callable[[], None]) -> None:
        """`on_taken_over` is called once another protocol has the connection."""
        self.transport: Any = transport
        self.early = early
        self._on_taken_over = on_taken_over

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Let `protocol` receive from now on, first the bytes that came early."""
        self.transport.set_protocol(protocol)
        self._on_taken_over()
        protocol.connection_made(self.transport)
        data, self.early = self.early, b""
        if data:
            protocol.data_received(data)
        self.transport.resume_reading()


class HttpProtocol(HttpToolsProtocol):
    server_state: HttpServerState

    def __init__(
        self, config: Config, server_state: HttpServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser = None  # type: ignore[assignment]  # until `connection_made`: it refers to the protocol, and not every handshake succeeds
        self.state = server_state
        self.access_log = False
        self.exchange: Exchange | None = None
        self.feeding = False  # the parser is running: requests that it completes start when it returns
        self.waiting: deque[Exchange] = deque()
        self.remote = ""
        self.verification = VerificationResult()
        self.idle_since = self.loop.time()
        self.head_since = self.idle_since  # 0.0: between two heads
        self.head_size = 0
        self.piece = 0  # bytes of the piece that the parser has now
        self.around_body = 0  # bytes since the last one of a body; -1: the parser found some in this piece
        self.in_head = False
        self.unfed: list[bytes] = []  # pieces of a line of the head that is not complete
        self.backlog = b""  # pipelined requests that are parsed when those before them are answered
        self.resuming = False  # the parser is being led past a head that has been seen already
        self.closed = False
        self.deaf = False  # what came last made no sense, so that nothing after it can
        self.hijacking: HijackedConnection | None = None
        self.held: bytearray | None = None  # what follows an upgrade request that is being handled
        self.method = ""
        self.url = b""
        self.headers = []
        self.last_user = ""

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(WRITE_BUFFER)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn: a last request may have others behind it
        self.remote = self.client[0] if self.client else ""
        ssl_object = transport.get_extra_info("ssl_object")
        if ssl_object is not None:
            self.verification = verification_result(ssl_object)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
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

    def data_received(self, data: bytes) -> None:
        if self.closed or self.deaf:
            return
        if self.hijacking is not None:
            self.hijacking.early += data
            return
        if self.held is not None:
            self.held += data
            if len(self.held) > MAX_EARLY:
                self.flow.pause_reading()
            return
        if self.head_since == 0.0 and self.exchange is None:
            self.head_since = self.loop.time()
        if self.backlog:
            self.backlog += data
            return
        monitor = self.state.monitor
        began = time.perf_counter()
        if began >= monitor.stale:
            monitor.read_cpu_time(began)
        if len(data) > _SLICE:
            self._feed_slices(data)
        else:
            self._feed(data)
        if (seconds := time.perf_counter() - began) >= NOTICED:
            self._record_long_parse(seconds)
        if (exchange := self.exchange) is not None and exchange.task is None:
            self._begin(exchange)

    def _feed(self, data: bytes) -> None:
        """Parse a piece of what the client sent."""
        if self.in_head and not (data := self._collect_lines(data)):
            return
        self.piece = len(data)
        self.feeding = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            self._feed_unknown_method(data)
        except httptools.HttpParserInvalidURLError:
            self._feed_raw_target(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade_asked(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._handle_malformed()
        if self.in_head:
            self.head_size = self.head_size or len(data)
            if len(self.headers) > MAX_HEADERS:
                self._reject_oversized_head()
        elif (receiving := self.waiting[-1] if self.waiting else self.exchange) is not None and not receiving.complete:
            self.around_body = 0 if self.around_body < 0 else self.around_body + len(data)
            if self.around_body > MAX_AROUND_BODY:
                self._handle_malformed()
        self.feeding = False

    def _record_long_parse(self, seconds: float) -> None:
        """Count the parsing of a piece as a step of the request that it belongs to; its head may be incomplete."""
        receiving = self.waiting[-1] if self.waiting else self.exchange
        if receiving is not None:
            request = receiving.request
        else:
            request = Request(self.method, "", raw_path=self.url.decode("latin-1"))
            request.remote = self.remote
        self.state.monitor.step(seconds, request)

    def _feed_slices(self, data: bytes) -> None:
        """Parse a large piece, heads in slices: the limits are checked between slices, and few pipelined requests are parsed in a step.

        Pipelined requests beyond a slice are parsed when those before them are answered.
        """
        start = 0
        while start < len(data) and not self.closed and not self.deaf:
            if self.held is not None:
                self.data_received(data[start:])
                return
            receiving = self.waiting[-1] if self.waiting else self.exchange
            if self.waiting and self.waiting[-1].complete:
                self.backlog = data[start:]
                return
            in_body = not self.in_head and receiving is not None and not receiving.complete
            end = len(data) if in_body else start + _SLICE
            self._feed(data[start:end])
            start = end

    def _collect_lines(self, data: bytes) -> bytes:
        """Return the pieces of the head since the last line once they hold the end of a line; nothing before.

        The parser copies a name or value with each piece of it, which takes quadratic time if pieces are small.
        """
        self.head_size += len(data)
        if self.head_size > MAX_HEAD:
            self._reject_oversized_head()
            return b""
        if b"\n" not in data:
            self.unfed.append(data)
            return b""
        if self.unfed:
            data = b"".join((*self.unfed, data))
            self.unfed.clear()
        return data

    def _reject_oversized_head(self) -> None:
        """Refuse a head that is beyond a limit."""
        self._reject_with(too_large(*(excess(self.url, self.headers) or (431, f"the request's head is longer than {MAX_HEAD} bytes"))))

    def _handle_malformed(self) -> None:
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if self.in_head or exchange is None or exchange.complete:
            self.reject(400, "Bad Request")
        else:
            self.deaf = True
            exchange.mark_body_malformed()

    def _feed_unknown_method(self, data: bytes) -> None:
        """llhttp knows a fixed list of methods; upstream takes any token, and answers by its own rules."""
        match = _METHOD.match(data)
        if match is None or self.head_size or self.exchange is not None:
            self.reject(400, "Bad Request")
            return
        self.method = match[1].decode()
        self._feed_instead(b"GET" + data[match.end(1) :])

    def _feed_raw_target(self, data: bytes) -> None:
        """llhttp wants targets in ASCII; upstream takes what is beyond as if it were percent-encoded."""
        line, newline, rest = data.partition(b"\n")
        escaped = _BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], line)
        if escaped == line or not newline or self.head_size or self.exchange is not None:
            self.reject(400, "Bad Request")
            return
        self._feed_instead(escaped + newline + rest)

    def _feed_instead(self, data: bytes) -> None:
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade_asked(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.reject(400, "Bad Request")

    def _upgrade_asked(self, rest: bytes) -> None:
        """Handle the head of an upgrade, after which llhttp stops. The handler may hijack the connection or send a normal response."""
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if self.closed or exchange is None:
            return
        body = _body_headers(exchange.request.headers)
        if body is None:
            self.held = bytearray(rest)
            exchange.end_of_body()
            return
        exchange.request.upgrade = None  # upgrades with bodies are not known to HTTP's users
        self.parser = httptools.HttpRequestParser(self)
        self.resuming = True
        self.data_received(b"POST / HTTP/1.1\r\n" + body + b"\r\n" + rest)

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self.state.unread.stalled(self, self.loop.time())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.state.unread.resumed(self)
        if self.exchange is None and not self.closed and self.hijacking is None:
            self.idle_since = self.loop.time()
            self._proceed()

    # --- unread responses (a Reader of unread.py)

    def unread(self) -> int:
        """Return the bytes of responses that the client has not read."""
        size: int = self.transport.get_write_buffer_size()
        return size + (self.exchange.unsent if self.exchange is not None else 0)

    def user(self) -> str:
        """Return the name of the user whose request was answered last."""
        return self.exchange.request.user.name if self.exchange is not None else self.last_user

    def abort_connection(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    # --- the parser's side

    def on_message_begin(self) -> None:
        if self.resuming:
            return
        self.url = b""
        self.headers = []
        self.in_head = True
        self.head_size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # else a trailer, or a head seen before
            self.headers.append((name.lower(), value.rstrip(b" \t")))  # the parser has taken off what stands before it

    def on_headers_complete(self) -> None:
        if self.resuming:
            self.resuming = False
            return
        self.in_head = False
        self.around_body = 0
        self.head_since = 0.0
        if self.closed:
            return
        if self.head_size + self.piece > WITHIN_LIMITS and excess(self.url, self.headers):
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
        request = Request(method, target.path, raw_path=target.raw_path, query_string=target.query, headers=self.headers)
        request.remote = self.remote
        request.scheme = self.scheme or "http"
        request.http_version = version
        request.peer_certificates, request.peer_objection = self.verification
        request.cancel_when_gone = method in ("GET", "HEAD")
        exchange = Exchange(self, request, keep_alive=version != "1.0" and parser.should_keep_alive(), http10=version == "1.0")
        if not self._check_headers(exchange):
            return
        request.body = exchange
        request.disconnected = exchange.wait_closed
        if parser.should_upgrade() and method != "CONNECT" and not self.waiting:
            request.upgrade = exchange.hijack
        if self.exchange is None and not self.flow.write_paused:
            self._start(exchange)
        else:
            self.flow.pause_reading()
            self.waiting.append(exchange)

    def _check_headers(self, exchange: Exchange) -> bool:
        hosts = codings = 0
        for name, value in exchange.request.headers:
            if name == b"host":
                hosts += 1
                if not valid_host(value):
                    self.reject(400, "Bad Request", "malformed Host header")
                    return False
            elif name == b"content-length":
                exchange.length = int(value)
            elif name == b"transfer-encoding" and not exchange.http10:
                codings += 1
                if codings > 1 or value.lower() != b"chunked":
                    self.reject(501, "Not Implemented", text="Unsupported transfer encoding")
                    return False
            elif name == b"expect" and value:
                if b"100-continue" not in value.lower():
                    self._reject_with(expectation_failed(self.state.date))
                    return False
                exchange.expects_continue = not exchange.http10
        if exchange.request.http_version not in ("1.0", "1.1"):
            self.reject(505, "HTTP Version Not Supported", "unsupported protocol version")
            return False
        if hosts != 1 and not (hosts == 0 and exchange.http10):
            self.reject(400, "Bad Request", "" if hosts else "missing required Host header")
            return False
        return True

    def on_body(self, body: bytes) -> None:
        self.around_body = -1
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if exchange is not None:
            exchange.feed(body)

    def on_message_complete(self) -> None:
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if exchange is not None and not self.parser.should_upgrade():
            exchange.end_of_body()

    # --- exchanges

    def _start(self, exchange: Exchange) -> None:
        self.exchange = exchange
        if not self.feeding:
            self._begin(exchange)

    def _begin(self, exchange: Exchange) -> None:
        if exchange.request.path == "*" and exchange.request.method == "OPTIONS":
            handler: Handler = _server_options
        else:
            handler = self.state.handler
        work = exchange.run(handler)
        exchange.task = task = start_eagerly(self.loop, work) if self.state.contended() else self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def finished(self, exchange: Exchange) -> None:
        """Continue with the next request, or close the connection, after the response was written."""
        self.state.total_requests += 1
        self.exchange = None
        if self.closed or self.transport.is_closing():
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
        """Begin the next request, if there is one: not before the client has read enough of the last response."""
        if self.waiting:
            self._start(self.waiting.popleft())
        if self.backlog and not self.waiting:
            backlog, self.backlog = self.backlog, b""
            self.data_received(backlog)
        if self.held is not None:
            rest, self.held = bytes(self.held), None
            self.parser = httptools.HttpRequestParser(self)
            if rest:
                self.data_received(rest)
        if not self.waiting and not self.closed:
            self.flow.resume_reading()

    def hijack(self) -> Hijacked:
        buffered, self.held = bytes(self.held or b""), None
        self.connections.discard(self)
        self.exchange = None
        self.flow.resume_reading()
        self.transport.pause_reading()
        self.parser = None  # type: ignore[assignment]  # the two refer to each other, and `connection_lost` goes to another protocol
        self.hijacking = HijackedConnection(self.transport, buffered, self._release)
        self.state.upgraded.add(self.transport)
        return self.hijacking

    def _release(self) -> None:
        """Drop the references to the connection, which uvloop's TLS refers back from (see closed.py)."""
        self.closed = True
        self.transport, self.flow, self.hijacking = CLOSED, None, None  # type: ignore[assignment]

    def reject(self, code: int, phrase: str, detail: str = "", text: str | None = None) -> None:
        """Answer what cannot be understood, and close. A request that is being answered on this connection is cut."""
        self._reject_with(bad_request(code, phrase, detail, text))

    def _reject_with(self, answer: bytes) -> None:
        if self.closed:
            return
        if self.exchange is None:
            self.transport.write(answer)
        self._close(linger=True)

    def _close(self, *, linger: bool) -> None:
        """With `linger`, what the client is still sending is thrown away for a moment: a reset would lose the answer."""
        self.in_head = False
        if not linger:
            self.transport.close()
            return
        self.closed = True
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    # --- the server's side

    def check_idle(self, now: float) -> None:
        """Called every few seconds: close connections that say nothing, or never finish a head."""
        if self.exchange is not None or self.closed or self.flow.write_paused:
            return
        if self.head_since:
            if now - self.head_since > HEAD_TIMEOUT:
                self.transport.close()
        elif now - self.idle_since > IDLE_TIMEOUT:
            self.transport.close()

    def shutdown(self) -> None:
        if self.exchange is None:
            self.transport.close()
        else:
            self.exchange.server_stops()


async def _server_options(request: Request) -> Any:
    """`OPTIONS *`, which Go's server answers before any handler."""
    from tetrapod.generic.request import Response

    return Response(200, [])


def _body_headers(headers: HeaderList) -> bytes | None:
    """The lines that say how long the body is; None where there is none."""
    lines = [
        name + b": " + value + b"\r\n"
        for name, value in headers
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
    ]
    return b"".join(lines) if lines else None
