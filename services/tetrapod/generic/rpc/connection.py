"""An HTTP/2 connection to a gRPC server: frames, flow control, and the number of concurrent calls."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tetrapod.generic.http2 import frames
from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.generic.rpc.headers import LARGEST, HeaderReader
from tetrapod.generic.rpc.keepalive import Keepalive
from tetrapod.generic.rpc.stream import Call
from tetrapod.machinery.failure import Failure

_FRAME: Final = 1 << 20
_REPLENISH: Final = 1 << 30
_PING: Final = b"tetrapod"
_GREETING: Final = (
    frames.PREFACE
    + frames.settings(
        {
            frames.HEADER_TABLE_SIZE: 0,
            frames.ENABLE_PUSH: 0,
            frames.INITIAL_WINDOW_SIZE: frames.LARGEST_WINDOW,
            frames.MAX_FRAME_SIZE: _FRAME,
        }
    )
    + frames.window_update(0, frames.LARGEST_WINDOW - frames.DEFAULT_WINDOW)
)


class Http2Connection(asyncio.Protocol):
    """An HTTP/2 connection, as an asyncio protocol. It accepts calls between `greeted` and `closing`.

    `greeted` completes with None when the server's settings have arrived, or with the error if the connection fails
    before. `closing` is True once no new calls are accepted.

    Args:
        response_timeout: the seconds after which a server that sends nothing while a call waits counts as unresponsive.
        on_unresponsive: called when the server is unresponsive. The connection then accepts no new calls and ends
            repeatable ones. Other calls keep waiting, because the server may still execute them.
    """

    def __init__(self, response_timeout: float = math.inf, on_unresponsive: Callable[[], None] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[Failure[RpcError] | None] = self.loop.create_future()
        self.closing = False
        self.response_timeout = response_timeout
        self._on_unresponsive = on_unresponsive
        self._transport: Any = None
        self._buffer = b""
        self._calls: dict[int, Call] = {}
        self._ids = itertools.count(1, 2)
        self._headers = HeaderReader()
        self._block: tuple[int, int, bytes] | None = None  # stream, flags and bytes of an incomplete header block
        self._window = frames.DEFAULT_WINDOW
        self._first_window = frames.DEFAULT_WINDOW
        self._largest_frame = frames.DEFAULT_FRAME
        self._max_calls = 1 << 31
        # Futures of callers that wait for another call to end.
        self._waiting_callers: deque[asyncio.Future[None]] = deque()
        self._received = 0
        self._keepalive = Keepalive(
            self._ping,
            lambda: bool(self._calls) and not self.closing,
            self._on_keepalive_lost,
            self._on_unresponsive_server,
        )

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
        while len(self._calls) >= self._max_calls and not self.closing:
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._waiting_callers.append(waiter)
            await waiter
        if self.closing:
            raise RpcError(Code.UNAVAILABLE, "the connection is closing")
        call = Call(self, next(self._ids), self._first_window, repeatable)
        self._calls[call.id] = call
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, call.id, block)
        if message is None:
            self.write(head)
        else:
            call.queue(message, last=True)
            self.flush(call, head)
        self._keepalive.watch()
        return call

    def forget(self, call: Call) -> None:
        """Remove a call that has ended, and start the next waiting one.

        A closing connection is closed after its last call.
        """
        self._calls.pop(call.id, None)
        if self._waiting_callers:
            self._make_room()
        if self.closing and not self._calls and self._transport is not None:
            self._transport.close()

    def _make_room(self) -> None:
        while self._waiting_callers:
            waiter = self._waiting_callers.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def write(self, data: bytes) -> None:
        """Write whole frames. They are dropped if the transport is closing."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def flush(self, call: Call, head: bytes = b"") -> None:
        """Send as much of a call's pending data as the flow control windows allow, in frames of the allowed size.

        Args:
            call: the call.
            head: frames to send before the data, in the same write. A separate write costs a system call.
        """
        pieces: list[bytes | memoryview] = [head] if head else []
        while call.pending:
            piece = call.pending[0]
            size = min(len(piece), call.window, self._window, self._largest_frame)
            if size <= 0:
                break
            if size == len(piece):
                call.pending.popleft()
            else:
                call.pending[0] = piece[size:]
            call.window -= size
            self._window -= size
            last = frames.END_STREAM if call.last_sent and not call.pending else 0
            pieces += (frames.head(frames.DATA, last, call.id, size), piece[:size])
        if pieces:
            self.write(b"".join(pieces))

    def close(self, error: RpcError | None = None) -> None:
        """Close the connection and end every call with `error`; None means UNAVAILABLE."""
        self.write(frames.goaway(frames.NO_ERROR))
        if self._transport is not None:
            self._transport.close()
        self._end_calls(error or RpcError(Code.UNAVAILABLE, "the connection was closed"))

    def _end_calls(self, error: RpcError) -> None:
        self.closing = True
        if not self.greeted.done():
            self.greeted.set_result(Failure(error))
        for call in list(self._calls.values()):
            call.end(error)
        while self._waiting_callers:
            self._make_room()
        self._keepalive.end()

    # --- is the member there?

    def check_alive(self) -> None:
        """Ping the server, because a call has waited for `response_timeout` seconds.

        Do nothing if data has arrived since.
        """
        self._keepalive.check_alive(self.response_timeout)

    def _ping(self) -> None:
        self.write(frames.frame(frames.PING, 0, 0, _PING))

    def _on_keepalive_lost(self) -> None:
        self._transport.abort()
        self._end_calls(RpcError(Code.UNAVAILABLE, "keepalive watchdog timeout"))

    def _on_unresponsive_server(self) -> None:
        if self.closing:
            return
        if self._on_unresponsive is not None:
            self._on_unresponsive()
        self._stop_calls(lambda call: call.repeatable, RpcError(Code.UNAVAILABLE, "the server does not answer"))

    def _stop_calls(self, ended: Callable[[Call], bool], error: RpcError) -> None:
        """Accept no new calls, and end those for which `ended` returns true with `error`.

        The connection is closed after the last of the other calls.
        """
        self.closing = True
        for call in list(self._calls.values()):
            if ended(call):
                call.last_sent = True
                call.end(error)
        while self._waiting_callers:
            self._make_room()
        if not self._calls:
            self._transport.close()

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.write(_GREETING)

    def connection_lost(self, exc: Exception | None) -> None:
        """End every call with UNAVAILABLE."""
        self._end_calls(RpcError(Code.UNAVAILABLE, str(exc) if exc else "connection closed by the server"))

    def data_received(self, data: bytes) -> None:
        self._keepalive.last_received = self.loop.time()
        self._keepalive.pinged = False
        if self._buffer:
            data = self._buffer + data
        start, size = 0, len(data)
        try:
            while size - start >= frames.HEAD_SIZE:
                length, kind, flags, stream = frames.read_head(data, start)
                if length > _FRAME:
                    raise frames.ProtocolError(frames.FRAME_SIZE_ERROR, "a frame exceeds the maximum frame size")
                end = start + frames.HEAD_SIZE + length
                if end > size:
                    break
                self._frame(kind, flags, stream, data[start + frames.HEAD_SIZE : end])
                start = end
        except frames.ProtocolError as error:
            self.write(frames.goaway(error.code))
            self._transport.close()
            self._end_calls(RpcError(Code.INTERNAL, str(error)))
            return
        self._buffer = data[start:]

    # --- frames

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != frames.CONTINUATION or stream != self._block[0]):
            raise frames.ProtocolError(frames.PROTOCOL_ERROR, "a header block was interrupted")
        if kind == frames.DATA:
            self._data(flags, stream, payload)
        elif kind == frames.HEADERS:
            self._header_block(flags, stream, payload)
        elif kind == frames.CONTINUATION:
            self._continuation(flags, payload)
        elif kind == frames.WINDOW_UPDATE:
            self._window_update(stream, frames.read_number(payload) & 0x7FFFFFFF)
        elif kind == frames.SETTINGS:
            self._settings(flags, payload)
        elif kind == frames.PING:
            if not flags & frames.ACK:
                self.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif kind == frames.RST_STREAM:
            if (call := self._calls.get(stream)) is not None:
                call.last_sent = True
                call.on_reset(frames.read_number(payload))
        elif kind == frames.GOAWAY:
            self._goaway(payload)
        elif kind == frames.PUSH_PROMISE:
            raise frames.ProtocolError(frames.PROTOCOL_ERROR, "a push, which is disabled")

    def _data(self, flags: int, stream: int, payload: bytes) -> None:
        size = len(payload)
        self._received += size
        if self._received >= _REPLENISH:
            self.write(frames.window_update(0, self._received))
            self._received = 0
        if (call := self._calls.get(stream)) is not None:
            call.on_data(frames.unpadded(flags, payload), size, last=bool(flags & frames.END_STREAM))

    def _header_block(self, flags: int, stream: int, payload: bytes) -> None:
        block = frames.unpadded(flags, payload)
        if flags & frames.PRIORITY_FLAG:
            block = block[5:]
        if flags & frames.END_HEADERS:
            self._header_list(flags, stream, block)
        else:
            self._block = (stream, flags, block)

    def _continuation(self, flags: int, payload: bytes) -> None:
        if self._block is None:
            raise frames.ProtocolError(frames.PROTOCOL_ERROR, "a CONTINUATION frame without a header block")
        stream, first, block = self._block
        block += payload
        if len(block) > LARGEST:
            raise frames.ProtocolError(frames.PROTOCOL_ERROR, "a header block is too large")
        if flags & frames.END_HEADERS:
            self._block = None
            self._header_list(first, stream, block)
        else:
            self._block = (stream, first, block)

    def _header_list(self, flags: int, stream: int, block: bytes) -> None:
        headers = self._headers.read(block)
        if (call := self._calls.get(stream)) is not None:
            call.on_headers(headers, last=bool(flags & frames.END_STREAM))

    def _window_update(self, stream: int, size: int) -> None:
        if not stream:
            self._window += size
            for waiting in list(self._calls.values()):
                if waiting.pending:
                    self.flush(waiting)
        elif (call := self._calls.get(stream)) is not None:
            call.window += size
            self.flush(call)

    def _settings(self, flags: int, payload: bytes) -> None:
        if flags & frames.ACK:
            return
        values = frames.read_settings(payload)
        self._max_calls = values.get(frames.MAX_CONCURRENT_STREAMS, self._max_calls)
        self._largest_frame = values.get(frames.MAX_FRAME_SIZE, self._largest_frame)
        window = values.get(frames.INITIAL_WINDOW_SIZE, self._first_window)
        if window > frames.LARGEST_WINDOW:
            raise frames.ProtocolError(frames.FLOW_CONTROL_ERROR, "a window is too large")
        change, self._first_window = window - self._first_window, window
        self.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        for call in list(self._calls.values()):
            call.window += change
            self.flush(call)
        if not self.greeted.done():
            self.greeted.set_result(None)
        self._make_room()

    def _goaway(self, payload: bytes) -> None:
        """Handle a GOAWAY: calls up to the last accepted stream continue, later ones end, and no new ones start."""
        last, code, text = frames.read_goaway(payload)
        error = RpcError(
            Code.UNAVAILABLE,
            f"the server is closing the connection (code {code}) {text.decode('utf-8', 'replace')}".strip(),
        )
        self._stop_calls(lambda call: call.id > last, error)
