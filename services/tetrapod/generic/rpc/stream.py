"""`Call`: one call, which is one stream: messages out as far as the windows allow, messages in, and how it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from tetrapod.generic.rpc import frames
from tetrapod.generic.rpc.errors import Code, RpcError, of_http, of_reset, of_trailers

_PREFIX: Final = 5
_REPLENISH: Final = 1 << 30
_MOMENT: Final = 0.002  # clocks of loops tick in milliseconds


class Carrier(Protocol):
    """The connection, as its calls see it."""

    loop: asyncio.AbstractEventLoop
    patience: float

    def doubt(self) -> None:
        """A call has waited as long as the patience is."""
        ...

    def write(self, data: bytes) -> None:
        """Frames, as they are."""
        ...

    def flush(self, call: Call) -> None:
        """Send of what is pending what the windows allow."""
        ...

    def forget(self, call: Call) -> None:
        """It has ended."""
        ...


class Call:
    """Iterate for the messages of the answer; `unary` is for calls that have one. Both raise RpcError."""

    __slots__ = (
        "_buffer",
        "_chunks",
        "_deadline",
        "_error",
        "_headers",
        "_messages",
        "_received",
        "_timer",
        "_waiter",
        "connection",
        "ended",
        "id",
        "last_sent",
        "pending",
        "repeatable",
        "window",
    )

    def __init__(self, connection: Carrier, id: int, window: int, repeatable: bool) -> None:
        self.connection = connection
        self.id = id
        self.window = window  # what the server takes of this stream
        self.repeatable = repeatable
        self.pending: deque[memoryview] = deque()  # what it has not taken yet
        self.last_sent = False  # nothing follows what is pending
        self.ended = False
        self._chunks: list[bytes] = []
        self._buffer = b""
        self._headers: dict[str, str] | None = None
        self._messages: deque[bytes] = deque()
        self._received = 0
        self._error: RpcError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- the caller's side

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Nothing is sent any more once the call has ended."""
        if not self.ended:
            self.pending.append(memoryview(_prefixed(message)))
            self.last_sent = last
            self.connection.flush(self)

    def cancel(self, error: RpcError | None = None) -> None:
        """The server is told, and whoever waits gets `error`, or CANCELLED."""
        if not self.ended:
            self.connection.write(frames.reset(self.id, frames.CANCEL))
            self.end(error or RpcError(Code.CANCELLED, "cancelled"))

    async def unary(self, timeout: float) -> bytes:
        """The one message of the answer, within `timeout` seconds. Raises RpcError."""
        self._deadline = self.connection.loop.time() + timeout
        self._timer = self.connection.loop.call_later(min(timeout, self.connection.patience), self._time_passes)
        try:
            while not self.ended:
                await self._wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._timer.cancel()
        if self._error is not None:
            raise self._error
        self._parse()
        if len(self._messages) != 1:
            raise RpcError(Code.INTERNAL, f"{len(self._messages)} messages for an answer")
        return self._messages[0]

    def __aiter__(self) -> Call:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._chunks:
                self._parse()
            if self._messages:
                return self._messages.popleft()
            if self.ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._wait()

    def _time_passes(self) -> None:
        left = self._deadline - self.connection.loop.time()
        if left < _MOMENT:
            self.cancel(RpcError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded"))
            return
        self._timer = self.connection.loop.call_later(min(left, self.connection.patience), self._time_passes)
        self.connection.doubt()

    async def _wait(self) -> None:
        self._waiter = self.connection.loop.create_future()
        await self._waiter

    def _parse(self) -> None:
        """Raises RpcError. Messages of the bytes that have come."""
        data = b"".join((self._buffer, *self._chunks))
        self._chunks.clear()
        at = 0
        while len(data) - at >= _PREFIX:
            if data[at]:
                raise RpcError(Code.INTERNAL, "a compressed message, which was not asked for")
            end = at + _PREFIX + int.from_bytes(data[at + 1 : at + _PREFIX], "big")
            if end > len(data):
                break
            self._messages.append(data[at + _PREFIX : end])
            at = end
        self._buffer = data[at:]

    # --- the connection's side

    def on_headers(self, headers: dict[str, str], *, last: bool) -> None:
        """The headers of the answer, or its trailers, which say how it went."""
        if self._headers is None:
            self._headers = headers
            if headers.get(":status") != "200":
                self.cancel(of_http(headers.get(":status", "")))
                return
        if last:
            self.end(of_trailers(headers))

    def on_data(self, data: bytes, size: int, *, last: bool) -> None:
        """`size` is what the data takes of the window."""
        self._received += size
        if self._received >= _REPLENISH and not last:
            self.connection.write(frames.window_update(self.id, self._received))
            self._received = 0
        if data:
            self._chunks.append(data)
        if last:
            self.end(RpcError(Code.INTERNAL, "server closed the stream without sending trailers"))
        elif data:
            self._wake()

    def on_reset(self, reason: int) -> None:
        """The server gave the stream up."""
        self.end(of_reset(reason))

    def end(self, error: RpcError | None) -> None:
        """Well, or with an error; only the first end counts. The server need not send what is left."""
        if self.ended:
            return
        self.ended = True
        self._error = error
        self.pending.clear()
        if not self.last_sent and error is None:
            self.connection.write(frames.reset(self.id, frames.NO_ERROR))
        self.connection.forget(self)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _prefixed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message
