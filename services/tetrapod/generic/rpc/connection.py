"""An HTTP/2 connection to a gRPC server: its calls, and whether the server responds."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.client_connection import ClientConnection
from tetrapod.generic.http2.frames import ProtocolError
from tetrapod.generic.http2.keepalive import Keepalive
from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.generic.rpc.headers import LARGEST, HeaderReader
from tetrapod.generic.rpc.stream import Call
from tetrapod.machinery.failure import Failure

KEEPALIVE: Final = 10.0
"""Seconds without received data after which a ping is sent while calls are open.

Upstream's storage uses 30 s, and 10 s for the response; apiserver/pkg/storage/storagebackend/factory/etcd3.go
"""
KEEPALIVE_TIMEOUT: Final = 5.0
"""Seconds after which a connection without an answer to its ping is dead."""
PING_DELAY: Final = 0.05
"""Seconds by which replies to the server's PINGs are delayed.

gRPC servers in Go send one with each message while none is unanswered, to estimate the bandwidth. Answered at once, it
costs a read and a write for each call of etcd.
"""
_SETTINGS: Final = {
    frames.HEADER_TABLE_SIZE: 0,
    frames.ENABLE_PUSH: 0,
    frames.MAX_FRAME_SIZE: 1 << 20,
}


class ConnectionOptions(NamedTuple):
    """How a connection is used, where it differs from that of etcd.

    Attributes:
        window: the bytes that the server may send on each call before the caller has received them.
        pings: whether a ping is sent if nothing was received for ten seconds while calls are open. Servers of grpc-go
            close connections with such pings unless they are configured otherwise, as etcd is.
    """

    window: int = frames.LARGEST_WINDOW
    pings: bool = True


_DEFAULT: Final = ConnectionOptions()


class Http2Connection(ClientConnection[Call]):
    """An HTTP/2 connection whose streams are calls. It accepts calls between `ready` and `closing`.

    `ready` completes with None when the server's settings have arrived, or with the error if the connection fails
    before. `closing` is True once no new calls are accepted.

    Args:
        response_timeout: the seconds after which a server that sends nothing while a call waits counts as unresponsive.
        on_unresponsive: called when the server is unresponsive. The connection then accepts no new calls and ends
            repeatable ones. Other calls keep waiting, because the server may still execute them.
        options: how the connection is used.
    """

    def __init__(
        self,
        response_timeout: float = math.inf,
        on_unresponsive: Callable[[], None] | None = None,
        options: ConnectionOptions = _DEFAULT,
    ) -> None:
        watchdog = Keepalive(
            self.ping,
            lambda: bool(self.streams) and not self.closing,
            self._on_keepalive_lost,
            self._on_unresponsive_server,
            KEEPALIVE if options.pings else math.inf,
            KEEPALIVE_TIMEOUT,
        )
        settings = _SETTINGS | {frames.INITIAL_WINDOW_SIZE: options.window}
        super().__init__(watchdog, LARGEST, settings, PING_DELAY)
        self.receive_window = options.window
        self.ready: asyncio.Future[Failure[RpcError] | None] = self.loop.create_future()
        self.response_timeout = response_timeout
        self._on_unresponsive = on_unresponsive
        self._headers = HeaderReader()
        # Futures of callers that wait for another call to end.
        self._waiting_callers: deque[asyncio.Future[None]] = deque()

    # --- calls

    async def begin(self, block: bytes, message: bytes | None, *, repeatable: bool) -> Call:
        """Start a call and return it. Wait first if the server's limit of concurrent calls is reached.

        Args:
            block: the encoded headers.
            message: the only message of the request; None if the caller sends messages with `Call.send`.
            repeatable: whether the call has no side effects.

        Raises:
            RpcError: the connection is closing.
        """
        while len(self.streams) >= self.server.max_streams and not self.closing:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._waiting_callers.append(waiter)
            await waiter
        if self.closing:
            raise RpcError(Code.UNAVAILABLE, "the connection is closing")
        call = Call(self, self.next_id(), self.server.window, repeatable)
        if message is not None:
            call.queue(message, last=True)
        self.open(call, block, ended=False)
        return call

    def forget(self, call: Call) -> None:
        """Remove a call that has ended, and start the next waiting one.

        A closing connection is closed after its last call.
        """
        self.streams.pop(call.id, None)
        if self._waiting_callers:
            self._make_room()
        if self.closing and not self.streams:
            self.close_transport()

    def _make_room(self) -> None:
        while self._waiting_callers:
            waiter = self._waiting_callers.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def close(self, error: RpcError | None = None) -> None:
        """Close the connection and end every call with `error`; None means UNAVAILABLE."""
        self.write(frames.goaway(frames.NO_ERROR))
        self.close_transport()
        self._end_calls(error or RpcError(Code.UNAVAILABLE, "the connection was closed"))

    def _end_calls(self, error: RpcError) -> None:
        self.closing = True
        if not self.ready.done():
            self.ready.set_result(Failure(error))
        for call in list(self.streams.values()):
            call.end(error)
        while self._waiting_callers:
            self._make_room()
        self._keepalive.end()

    # --- is the member there?

    def check_alive(self) -> None:
        """Send a PING if nothing was received for `response_timeout` seconds, because a call has waited for so long.

        If nothing is received within the same time again, the server is unresponsive (see `on_unresponsive`).
        """
        self._keepalive.check_alive(self.response_timeout)

    def _on_keepalive_lost(self) -> None:
        self.transport.abort()
        self._end_calls(RpcError(Code.UNAVAILABLE, "keepalive watchdog timeout"))

    def _on_unresponsive_server(self) -> None:
        if self.closing:
            return
        if self._on_unresponsive is not None:
            self._on_unresponsive()
        self._stop_calls(lambda call: call.repeatable, RpcError(Code.UNAVAILABLE, "the server does not answer"))

    def _stop_calls(self, ended: Callable[[Call], bool], error: RpcError) -> None:
        """Accept no new calls, and end those of the open calls that `ended` selects.

        The connection is closed after the last of the other calls.

        Args:
            ended: returns whether a call is to be ended.
            error: the error of the ended calls.
        """
        self.closing = True
        for call in list(self.streams.values()):
            if ended(call):
                call.last_sent = True
                call.end(error)
        while self._waiting_callers:
            self._make_room()
        if not self.streams:
            self.close_transport()

    # --- the transport's side

    def connection_lost(self, exc: Exception | None) -> None:
        """End every call with UNAVAILABLE."""
        self._end_calls(RpcError(Code.UNAVAILABLE, str(exc) if exc else "connection closed by the server"))

    # --- the server's side

    def on_settings(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        self._make_room()

    def on_headers(self, number: int, block: bytes, *, last: bool) -> None:
        headers = self._headers.read(block)
        if (call := self.streams.get(number)) is not None:
            call.on_headers(headers, last=last)

    def on_goaway(self, last: int, code: int, text: bytes) -> None:
        """Handle a GOAWAY: calls up to the last accepted stream continue, later ones end, and no new ones start."""
        error = RpcError(
            Code.UNAVAILABLE,
            f"the server is closing the connection (code {code}) {text.decode('utf-8', 'replace')}".strip(),
        )
        self._stop_calls(lambda call: call.id > last, error)

    def on_violation(self, error: ProtocolError) -> None:
        self._end_calls(RpcError(Code.INTERNAL, str(error)))
