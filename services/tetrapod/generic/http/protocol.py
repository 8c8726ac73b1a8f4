"""`HttpProtocol`: one client connection. uvicorn's httptools protocol, made to speak our `Request` instead of ASGI.

Measured: no scope dictionary, no receive/send round trips, one timer for all idle connections. Beyond stock uvicorn it keeps the
bytes that follow an upgrade, hands over the raw connection, knows the client's certificate, takes any method token, limits heads,
and answers malformed requests with Go's texts. uvicorn is pinned; this file depends on its internals.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tetrapod.generic.http.eager import started
from tetrapod.generic.http.exchange import Exchange
from tetrapod.generic.http.mistrust import Judgement, judgement
from tetrapod.generic.http.refusal import bad_request, expectation_failed
from tetrapod.generic.http.target import parse_target, valid_host
from tetrapod.generic.request import Handler, HeaderList, Hijacked, Request

MAX_HEAD: Final = 1 << 20
"""Of a request's head; and of what may follow in a row that is no body: trailers, extensions of chunks."""
HEAD_TIMEOUT: Final = 32.0
IDLE_TIMEOUT: Final = 90.0
LINGER: Final = 0.5
MAX_EARLY: Final = 1 << 20
_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")


class FrontState(ServerState):
    """What all connections of one server share."""

    def __init__(self, handler: Handler, crowded: Callable[[], bool]) -> None:
        super().__init__()
        self.handler = handler
        self.crowded = crowded
        self.date = b""
        self.closing = False
        """Answers carry `Connection: close` from now on."""
        self.upgraded: set[asyncio.BaseTransport] = set()


class HijackedConnection:
    """A connection taken from the HTTP protocol. Nothing is read from it until `take_over`."""

    def __init__(self, transport: asyncio.Transport, early: bytes) -> None:
        self.transport: Any = transport
        self.early = early

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Let `protocol` receive from now on, first the bytes that came early."""
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        early, self.early = self.early, b""
        if early:
            protocol.data_received(early)
        self.transport.resume_reading()


class HttpProtocol(HttpToolsProtocol):
    server_state: FrontState

    def __init__(
        self, config: Config, server_state: FrontState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.state = server_state
        self.access_log = False
        self.exchange: Exchange | None = None
        self.feeding = False  # the parser has the word: what it finds begins when it is through
        self.waiting: deque[Exchange] = deque()
        self.remote = ""
        self.peer = Judgement()
        self.idle_since = self.loop.time()
        self.head_since = self.idle_since  # 0.0: between two heads
        self.head_size = 0
        self.bodiless = 0  # bytes since the last one of a body
        self.in_head = False
        self.resuming = False  # the parser is being led past a head that has been seen already
        self.closed = False
        self.deaf = False  # what came last made no sense, so that nothing after it can
        self.hijacking: HijackedConnection | None = None
        self.held: bytearray | None = None  # what follows an upgrade request that is being handled
        self.method = ""
        self.url = b""
        self.headers = []

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.remote = self.client[0] if self.client else ""
        ssl_object = transport.get_extra_info("ssl_object")
        if ssl_object is not None:
            self.peer = judgement(ssl_object)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
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
            self._malformed()
        if self.in_head:
            self.head_size += len(data)
            if self.head_size > MAX_HEAD:
                self.refuse(431, "Request Header Fields Too Large")
        elif (receiving := self.waiting[-1] if self.waiting else self.exchange) is not None and not receiving.complete:
            self.bodiless += len(data)
            if self.bodiless > MAX_HEAD:
                self._malformed()
        self.feeding = False
        if (exchange := self.exchange) is not None and exchange.task is None:
            self._begin(exchange)

    def _malformed(self) -> None:
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if self.in_head or exchange is None or exchange.complete:
            self.refuse(400, "Bad Request")
        else:
            self.deaf = True
            exchange.body_breaks_off()

    def _feed_unknown_method(self, data: bytes) -> None:
        """llhttp knows a fixed list of methods; upstream takes any token, and answers by its own rules."""
        match = _METHOD.match(data)
        if match is None or self.head_size or self.exchange is not None:
            self.refuse(400, "Bad Request")
            return
        self.method = match[1].decode()
        self._feed_instead(b"GET" + data[match.end(1) :])

    def _feed_raw_target(self, data: bytes) -> None:
        """llhttp wants targets in ASCII; upstream takes what is beyond as if it were percent-encoded."""
        line, newline, rest = data.partition(b"\n")
        escaped = _BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], line)
        if escaped == line or not newline or self.head_size or self.exchange is not None:
            self.refuse(400, "Bad Request")
            return
        self._feed_instead(escaped + newline + rest)

    def _feed_instead(self, data: bytes) -> None:
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade_asked(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.refuse(400, "Bad Request")

    def _upgrade_asked(self, rest: bytes) -> None:
        """llhttp stops after the head of an upgrade. Whoever handles the request may take the connection, or answer normally."""
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

    def resume_writing(self) -> None:
        self.flow.resume_writing()

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
        self.bodiless = 0
        self.head_since = 0.0
        if self.closed:
            return
        target = parse_target(self.url)
        if target is None:
            self.refuse(400, "Bad Request")
            return
        parser = self.parser
        version = parser.get_http_version()
        method = self.method or parser.get_method().decode("ascii")
        self.method = ""
        request = Request(method, target.path, raw_path=target.raw_path, query_string=target.query, headers=self.headers)
        request.remote = self.remote
        request.scheme = self.scheme or "http"
        request.http_version = version
        request.peer_certificates, request.peer_objection = self.peer
        request.cancel_when_gone = method in ("GET", "HEAD")
        exchange = Exchange(self, request, keep_alive=version != "1.0" and parser.should_keep_alive(), http10=version == "1.0")
        if not self._check_headers(exchange):
            return
        request.body = exchange
        request.disconnected = exchange.wait_closed
        if parser.should_upgrade() and method != "CONNECT" and not self.waiting:
            request.upgrade = exchange.hijack
        if self.exchange is None:
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
                    self.refuse(400, "Bad Request", "malformed Host header")
                    return False
            elif name == b"content-length":
                exchange.length = int(value)
            elif name == b"transfer-encoding" and not exchange.http10:
                codings += 1
                if codings > 1 or value.lower() != b"chunked":
                    self.refuse(501, "Not Implemented", text="Unsupported transfer encoding")
                    return False
            elif name == b"expect" and value:
                if b"100-continue" not in value.lower():
                    self._refuse_with(expectation_failed(self.state.date))
                    return False
                exchange.expects_continue = not exchange.http10
        if exchange.request.http_version not in ("1.0", "1.1"):
            self.refuse(505, "HTTP Version Not Supported", "unsupported protocol version")
            return False
        if hosts != 1 and not (hosts == 0 and exchange.http10):
            self.refuse(400, "Bad Request", "" if hosts else "missing required Host header")
            return False
        return True

    def on_body(self, body: bytes) -> None:
        self.bodiless = 0
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
        exchange.task = task = started(self.loop, work) if self.state.crowded() else self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def finished(self, exchange: Exchange) -> None:
        """The answer is written: the next request, or the end of the connection."""
        self.state.total_requests += 1
        self.exchange = None
        exchange.request.answered()
        if self.closed or self.transport.is_closing():
            return
        if not exchange.keep_alive:
            self._close(linger=not exchange.complete)
            return
        self.idle_since = self.loop.time()
        if self.waiting:
            self._start(self.waiting.popleft())
        if self.held is not None:
            rest, self.held = bytes(self.held), None
            self.parser = httptools.HttpRequestParser(self)
            if rest:
                self.data_received(rest)
        if not self.waiting and not self.closed:
            self.flow.resume_reading()

    def hijack(self) -> Hijacked:
        early, self.held = bytes(self.held or b""), None
        self.connections.discard(self)
        self.exchange = None
        self.flow.resume_reading()
        self.transport.pause_reading()
        self.hijacking = HijackedConnection(self.transport, early)
        self.state.upgraded = {transport for transport in self.state.upgraded if not transport.is_closing()}
        self.state.upgraded.add(self.transport)
        return self.hijacking

    def refuse(self, code: int, phrase: str, detail: str = "", text: str | None = None) -> None:
        """Answer what cannot be understood, and close. A request that is being answered on this connection is cut."""
        self._refuse_with(bad_request(code, phrase, detail, text))

    def _refuse_with(self, answer: bytes) -> None:
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
        if self.exchange is not None or self.closed:
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
