"""`Http2Connection`: a connection to a backend that carries many exchanges at once.

Upstream: golang.org/x/net/http2, transport.go, ClientConn; its health check is configured as in
k8s.io/apimachinery/pkg/util/net/http.go, configureHTTP2Transport
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.client_connection import ClientConnection
from tetrapod.generic.http2.frames import COMPRESSION_ERROR, ProtocolError
from tetrapod.generic.http2.header_decoding import TABLE_SIZE, HeaderDecoder, OversizedHeaders
from tetrapod.generic.http2.keepalive import Keepalive
from tetrapod.generic.proxy.exchange import MAX_HEAD, BackendError
from tetrapod.generic.proxy.h2.exchange import STREAM_WINDOW, Http2Exchange, code_name
from tetrapod.generic.proxy.tls_errors import lost_text

READ_IDLE: Final = 30.0
"""Seconds without received data after which a PING is sent."""
PING_TIMEOUT: Final = 15.0
"""Seconds after which a connection without an answer to its PING is dead."""
_FIRST_STREAMS: Final = 100
"""Streams that may be open before the server says how many (golang.org/x/net/http2, initialMaxConcurrentStreams)."""
_MOST_RESETS: Final = 1000
"""Resets after which a connection is used for no more exchanges. Servers close connections with more of them, as a
defence against CVE-2023-44487 (our own: 2,000 at once), and a client that cancels its watches must not end those of
others.
"""
_SETTINGS: Final = {
    frames.HEADER_TABLE_SIZE: TABLE_SIZE,
    frames.ENABLE_PUSH: 0,
    frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    frames.MAX_HEADER_LIST_SIZE: MAX_HEAD,
}


class Http2Connection(ClientConnection[Http2Exchange]):
    """An HTTP/2 connection to a backend, as an asyncio protocol.

    Args:
        on_lost: called once, with this connection, when it is lost.

    Attributes:
        idle_since: the time of the event loop since which no exchange is open.
    """

    def __init__(self, on_lost: Callable[[Http2Connection], None]) -> None:
        keepalive = Keepalive(
            self.ping,
            lambda: not self.closing or bool(self.streams),
            self._unresponsive,
            _keep_waiting,
            READ_IDLE,
            PING_TIMEOUT,
        )
        super().__init__(keepalive, MAX_HEAD, _SETTINGS)
        self.server.max_streams = _FIRST_STREAMS
        self.idle_since = self.loop.time()
        self._on_lost = on_lost
        self._decoder = HeaderDecoder(MAX_HEAD)
        self._resets = 0
        self._goaway = ""  # the error of exchanges that the connection does not survive

    @property
    def has_room(self) -> bool:
        """Whether another exchange may begin: the connection is open, and has fewer streams than the server allows."""
        return not self.closing and len(self.streams) < self.server.max_streams

    def begin(self, method: str, block: bytes, body: bytes = b"", *, all_sent: bool = True) -> Http2Exchange:
        """Send a request, or the beginning of it, and return its exchange, which has failed if the connection is lost.

        Args:
            method: the method of the request.
            block: the encoded headers.
            body: the body.
            all_sent: whether that is the whole request; otherwise `send` and `end_request` follow.
        """
        exchange = Http2Exchange(self, self.next_id(), self.server.window, method, all_sent=all_sent)
        if self.transport is None or self.transport.is_closing():
            exchange.end(BackendError(self._goaway or "http2: client connection lost", no_response=True, unsent=True))
            return exchange
        if body:
            exchange.pending.append(memoryview(body))
        self.open(exchange, block, ended=all_sent and not body)
        return exchange

    def forget(self, stream: Http2Exchange) -> None:
        """Remove an exchange that has ended.

        If it was the last one and the connection accepts no new ones, close the connection.
        """
        self.streams.pop(stream.id, None)
        if not self.streams:
            self.idle_since = self.loop.time()
            if self.closing:
                self._finish()

    def reset(self, stream: Http2Exchange, code: int) -> None:
        """Send a RST_STREAM frame with this HTTP/2 error code for a stream."""
        self.write(frames.reset(stream.id, code))
        self._resets += 1
        if self._resets >= _MOST_RESETS:
            self.closing = True

    def drain(self) -> None:
        """Begin no more exchanges, and close the connection after the last one."""
        self.closing = True
        if not self.streams:
            self._finish()

    def close(self) -> None:
        """Abort the connection and fail its exchanges."""
        self._abort("http2: client connection force closed via ClientConn.Close")

    def _finish(self) -> None:
        self.write(frames.goaway(frames.NO_ERROR))
        self.close_transport()

    def _abort(self, text: str) -> None:
        self._fail_all(text)
        if self.transport is not None:
            self.transport.abort()

    def _fail_all(self, text: str) -> None:
        self.closing = True
        for exchange in list(self.streams.values()):
            exchange.end(BackendError(text, no_response=not exchange.status))

    def _unresponsive(self) -> None:
        self._abort("http2: client connection lost")

    # --- the server's side

    def connection_lost(self, exc: Exception | None) -> None:
        self._keepalive.end()
        self.transport = None  # it refers back to this object
        self._fail_all(lost_text(exc) if exc else self._goaway or "unexpected EOF")
        self._on_lost(self)

    def on_settings(self) -> None:
        """Do nothing: `has_room` reads the settings."""

    def on_headers(self, number: int, block: bytes, *, last: bool) -> None:
        try:
            fields = self._decoder.decode(block)
        except OversizedHeaders:
            raise ProtocolError(COMPRESSION_ERROR, "http2: response header list larger than advertised limit") from None
        if (exchange := self.streams.get(number)) is not None:
            exchange.on_headers(fields, last=last)

    def on_goaway(self, last: int, code: int, text: bytes) -> None:
        self.closing = True
        self._goaway = (
            "http2: server sent GOAWAY and closed the connection; "
            f'LastStreamID={last}, ErrCode={code_name(code)}, debug="{text[:256].decode("utf-8", "replace")}"'
        )
        for exchange in list(self.streams.values()):
            if exchange.id > last:
                exchange.refused()
        if not self.streams:
            self._finish()

    def on_violation(self, error: ProtocolError) -> None:
        self._fail_all(f"connection error: {code_name(error.code)}")


def _keep_waiting() -> None:
    """Do nothing when a ping of `Keepalive.check_alive` is not answered: only gRPC channels send such pings."""
