"""`ReceivingProtocol`: the bytes that a client connection receives, until the HTTP parser has them.

It decides by the state of the connection whether received bytes are parsed now, later or never, and limits what one
step of the event loop parses. `protocol.py` has the rest of a connection: the parser's events, the requests and their
responses. connection_state.py describes the states. head_validation.py rewrites some requests before they are parsed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tetrapod.generic.http.connection_state import (
    BACKLOGGED,
    BROKEN,
    DECODING,
    HIJACKED,
    OPEN,
    UPGRADING,
    ConnectionState,
)
from tetrapod.generic.http.error_responses import bad_request, too_large
from tetrapod.generic.http.head_validation import escape_target, replace_method
from tetrapod.generic.http.http1_exchange import Http1Exchange
from tetrapod.generic.http.known_heads import KnownHeads
from tetrapod.generic.http.limits import MAX_AROUND_BODY, MAX_HEAD, MAX_HEADERS, excess
from tetrapod.generic.http.loop_monitor import NOTICED
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http.transports import HijackedConnection

MAX_EARLY: Final = 1 << 20
"""Bytes that are kept after an upgrade request before reading pauses."""
_SLICE: Final = 16 << 10
"""Bytes of heads and of chunked bodies that are parsed before the limits are checked again."""
MOST_CHUNKS: Final = 4096
"""Chunks that are decoded in one step of the event loop. A chunk of one byte takes 0.4 µs, and reading the object that
others wait for takes four steps.
"""


class ReceivingProtocol(HttpToolsProtocol):
    """One client connection: its state, its requests, and the received bytes until the parser has them.

    uvicorn creates it with its configuration, its server state, the state of the ASGI lifespan, and the event loop.

    Attributes:
        state: the state of the server.
        connection_state: the state of the connection.
        remote: the client's address, without its port.
        exchange: the request that is handled and its response; None while no request is handled.
        waiting: the pipelined requests that wait until that response is complete.
    """

    server_state: HttpServerState

    def __init__(
        self,
        config: Config,
        server_state: HttpServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser = None  # type: ignore[assignment]  # until `connection_made`: it refers to the protocol, and not every handshake succeeds
        self.state = server_state
        self.connection_state: ConnectionState = OPEN
        self.remote = ""
        # The requests: one is handled, others wait.
        self.exchange: Http1Exchange | None = None
        self.waiting: deque[Http1Exchange] = deque()
        self.idle_since = self.loop.time()
        # Bytes that are not parsed, depending on the state.
        self.backlog = b""  # BACKLOGGED: pipelined requests; DECODING: chunks
        self.upgrade_data = bytearray()  # UPGRADING: the bytes that follow the upgrade request
        self.hijacked: HijackedConnection | None = None  # HIJACKED
        # The parser and the head that it reads.
        self.parsing = False  # the parser is running: requests that it completes start when it returns
        self.in_head = False
        self.skipping_head = False  # the parser is led past a head that it has parsed before
        self.head_since = self.idle_since  # 0.0: between two heads
        self.head_size = 0
        self.piece_size = 0  # bytes of the piece that the parser has now
        self.spaced = b""  # that piece, if it has two spaces in a row
        self.framing_size = 0  # bytes since the last one of a body; -1: the parser found some in this piece
        self.chunks = 0  # pieces of bodies that the parser found in this step
        self.incomplete_line: list[bytes] = []  # pieces of a line of the head
        self.method = ""  # the method that the parser does not know
        self.url = b""
        self.headers = []
        self.known_heads = KnownHeads()

    def data_received(self, data: bytes) -> None:
        if self.connection_state is not OPEN:
            self._receive_unparsed(data)
            return
        if self.head_since == 0.0 and self.exchange is None:
            self.head_since = self.loop.time()
        monitor = self.state.monitor
        began = time.perf_counter()
        if began >= monitor.stale:
            monitor.read_cpu_time(began)
        self.chunks = 0
        if len(data) > _SLICE:
            self._feed_slices(data)
        elif self.exchange is not None or self.in_head or self.waiting:
            self._feed(data)
        elif not self._start_known(data):
            self._feed(data)
            self._keep_head(data)
        if (seconds := time.perf_counter() - began) >= NOTICED:
            self._record_long_parse(seconds)
        if (exchange := self.exchange) is not None and exchange.task is None:
            exchange.start(self.loop)

    def _keep_head(self, data: bytes) -> None:
        """Keep the head of the request that was just parsed from `data`, so that the next such head need not be.

        Do nothing if no request has been parsed.
        """
        exchange = self.exchange
        if exchange is None or not exchange.complete or exchange.length >= 0 or not exchange.keep_alive:
            return
        if not exchange.http10 and not exchange.expects_continue and not self.waiting and self.connection_state is OPEN:
            self.known_heads.keep(data, exchange.request)

    def _receive_unparsed(self, data: bytes) -> None:
        """Keep received bytes that cannot be parsed now, or drop them if the state is BROKEN or CLOSED."""
        state = self.connection_state
        if state is BACKLOGGED:
            self.backlog += data
        elif state is DECODING:
            self.backlog += data
            self.flow.pause_reading()
        elif state is UPGRADING:
            self.upgrade_data += data
            if len(self.upgrade_data) > MAX_EARLY:
                self.flow.pause_reading()
        elif state is HIJACKED and self.hijacked is not None:
            self.hijacked.early += data

    def _feed(self, data: bytes) -> None:
        """Pass received bytes to the HTTP parser, which calls the methods `on_…`.

        A request whose head is malformed is rejected (`reject`). Two kinds of heads that Go's server accepts are
        rewritten and parsed again: those with an unknown method, and those with bytes beyond ASCII in the target. After
        a malformed body, the connection is BROKEN.

        llhttp accepts several spaces in a request line. `has_single_spaces` finds them in heads that arrive in one
        piece.
        """
        if self.in_head and not (data := self._collect_lines(data)):
            return
        self.piece_size = len(data)
        if (self.exchange is None or self.exchange.complete) and b"  " in data:
            self.spaced = data
        self.parsing = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            self._feed_unknown_method(data)
        except httptools.HttpParserInvalidURLError:
            self._feed_raw_target(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._begin_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._handle_malformed(str(error))
        if self.in_head:
            self.head_size = self.head_size or len(data)
            if len(self.headers) > MAX_HEADERS:
                self._reject_oversized_head()
        elif (receiving := self.waiting[-1] if self.waiting else self.exchange) is not None and not receiving.complete:
            self.framing_size = 0 if self.framing_size < 0 else self.framing_size + len(data)
            if self.framing_size > MAX_AROUND_BODY:
                self._handle_malformed()
        self.parsing = False
        self.spaced = b""

    def _record_long_parse(self, seconds: float) -> None:
        """Report a parse of this many seconds to the loop monitor, as a step of the request that the bytes belong to.

        The head of that request may be incomplete.
        """
        receiving = self.waiting[-1] if self.waiting else self.exchange
        if receiving is not None:
            request = receiving.request
        else:
            request = Request(self.method, "", raw_path=self.url.decode("latin-1"))
            request.remote = self.remote
        self.state.monitor.step(seconds, request)

    def _feed_slices(self, data: bytes) -> None:
        """Parse received bytes that are longer than a slice, in slices, between which the limits are checked.

        One step of the event loop therefore parses only a few pipelined requests or chunks.

        - While a complete request waits for the response to an earlier one, the rest of the bytes is kept.
        - After MOST_CHUNKS chunks, or one slice if other connections wait for steps, the rest is decoded in later
          steps.
        - The bytes of a body with a Content-Length are not sliced.
        """
        start = 0
        while start < len(data):
            if self.connection_state is not OPEN:
                self._receive_unparsed(data[start:])
                return
            receiving = self.waiting[-1] if self.waiting else self.exchange
            if self.waiting and self.waiting[-1].complete:
                self.connection_state = BACKLOGGED
                self.backlog = data[start:]
                return
            in_body = not self.in_head and receiving is not None and not receiving.complete
            whole = in_body and receiving is not None and receiving.length >= 0
            end = len(data) if whole else start + _SLICE
            self._feed(data[start:end])
            start = end
            most = 0 if self.state.parsing else MOST_CHUNKS
            if self.chunks > most and start < len(data) and self.connection_state is OPEN:
                self._decode_later(data[start:])
                return

    def _decode_later(self, data: bytes) -> None:
        """Keep `data`, the rest of a chunked body, and decode it in a later step of the event loop.

        The state becomes DECODING, and reading pauses until then.
        """
        self.connection_state = DECODING
        self.backlog = data
        self.flow.pause_reading()
        self.state.parsing.add(self.loop, self._decode_rest)

    def _decode_rest(self) -> None:
        if self.connection_state is not DECODING:
            return
        self.connection_state = OPEN
        data, self.backlog = self.backlog, b""
        self.data_received(data)
        if self.connection_state is OPEN:
            # The handler runs first. A client that has closed its side after the request would otherwise be gone.
            self.loop.call_soon(self._resume_if_wanted)

    def _resume_if_wanted(self) -> None:
        receiving = self.exchange
        if self.connection_state is OPEN and not self.waiting and (receiving is None or receiving.accepts_more()):
            self.flow.resume_reading()

    def resume_reading(self) -> None:
        """Read from the client again, unless received bytes wait to be decoded.

        The event loop resumes one connection in each step, because each may have 64 kB to decrypt.
        """
        if self.flow.read_paused and self.connection_state is not DECODING:
            self.state.receiving.add(self.loop, self._resume_if_wanted)

    def _collect_lines(self, data: bytes) -> bytes:
        """Return the bytes of a head to pass to the parser, or b"" until they contain the end of a line.

        Bytes of an incomplete line are kept and returned with the following ones. The parser copies the present name or
        value with each piece of it, which would take quadratic time for small pieces. A head longer than MAX_HEAD is
        rejected here.
        """
        self.head_size += len(data)
        if self.head_size > MAX_HEAD:
            self._reject_oversized_head()
            return b""
        if b"\n" not in data:
            self.incomplete_line.append(data)
            return b""
        if self.incomplete_line:
            data = b"".join((*self.incomplete_line, data))
            self.incomplete_line.clear()
        return data

    def _reject_oversized_head(self) -> None:
        """Reject a request whose head exceeds a limit with 414 or 431, and close the connection."""
        self._reject_with(
            too_large(*(excess(self.url, self.headers) or (431, f"the request's head is longer than {MAX_HEAD} bytes")))
        )

    def _handle_malformed(self, reason: str = "") -> None:
        """Reject a malformed request, or mark its body as malformed if its head has been handled.

        Args:
            reason: the text of the parser's error; "" for none.
        """
        exchange = self.waiting[-1] if self.waiting else self.exchange
        if self.in_head or exchange is None or exchange.complete:
            self.reject(400, "Bad Request")
        else:
            self.connection_state = BROKEN
            exchange.mark_body_malformed(reason)

    def _feed_unknown_method(self, data: bytes) -> None:
        """Parse a request whose method llhttp does not know, with GET in its place; `method` keeps the real one.

        It is rejected (`reject`, 400) if the method is not a token, if a request is being handled, or if parts of the
        head came earlier. `data` begins with the request; the rest may follow later.
        """
        replaced = replace_method(data)
        if replaced is None or self.head_size or self.exchange is not None:
            self.reject(400, "Bad Request")
            return
        self.method, data = replaced
        self._feed_instead(data)

    def _feed_raw_target(self, data: bytes) -> None:
        """Parse a request whose target has bytes beyond ASCII, which llhttp rejects, after percent-encoding them.

        It is rejected (`reject`, 400) if its first line is ASCII or incomplete, if a request is being handled, or if
        parts of the head came earlier. `data` begins with the request.
        """
        escaped = escape_target(data)
        if escaped is None or self.head_size or self.exchange is not None:
            self.reject(400, "Bad Request")
            return
        if self.spaced:
            self.spaced = escaped
        self._feed_instead(escaped)

    def has_single_spaces(self, method: str) -> bool:
        """Return whether the line of the request whose head is complete has single spaces, as Go requires.

        It is True if the head arrived in several pieces, because the line may be in an earlier one.

        Args:
            method: the method of the request.
        """
        return bool(self.head_size) or b"%b %b HTTP/" % (method.encode(), self.url) in self.spaced

    def _feed_instead(self, data: bytes) -> None:
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._begin_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.reject(400, "Bad Request")

    def reject(self, code: int, phrase: str, detail: str = "", text: str | None = None) -> None:
        """Send the response of `bad_request`, with the same arguments, and close the connection.

        It is for a request that cannot be parsed. If a response is being written, it is cut off and nothing else is
        sent.
        """
        self._reject_with(bad_request(code, phrase, detail, text))

    def _start_known(self, data: bytes) -> bool:
        """Handle `data` as a request whose head is known, and return whether it is one."""
        raise NotImplementedError

    def _reject_with(self, response: bytes) -> None:
        """Send a response to a request that cannot be parsed, and close the connection."""
        raise NotImplementedError

    def _begin_upgrade(self, data: bytes) -> None:
        """Handle the end of an upgrade request's head, after which llhttp stops parsing. `data` follows the head."""
        raise NotImplementedError
