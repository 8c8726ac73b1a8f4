"""A gRPC call, which is one HTTP/2 stream: sending within flow control, receiving messages, and its completion."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from tetrapod.generic.http2 import frames
from tetrapod.generic.rpc.errors import Code, RpcError, error_from_http_status, error_from_reset, error_from_trailers
from tetrapod.machinery.failure import Failure

_PREFIX: Final = 5
_REPLENISH: Final = 1 << 30
_MOMENT: Final = 0.002  # seconds; the clock of an event loop has a resolution of milliseconds


class Carrier(Protocol):
    """The parts of an HTTP/2 connection that its calls use.

    Attributes:
        loop: the event loop.
        response_timeout: the seconds that a call waits before it calls `check_alive`.
        receive_window: the bytes that the server may send on a call before its caller has received them.
    """

    loop: asyncio.AbstractEventLoop
    response_timeout: float
    receive_window: int

    def check_alive(self) -> None:
        """Send a ping if no data has arrived for `response_timeout` seconds, in which a call has waited.

        If it is not answered, the connection ends its repeatable calls.
        """
        ...

    def write(self, data: bytes) -> None:
        """Send `data`, which consists of complete frames."""
        ...

    def flush(self, call: Call) -> None:
        """Send as much of a call's pending data as the flow control windows allow."""
        ...

    def forget(self, call: Call) -> None:
        """Remove a call that has ended from the connection."""
        ...


class Call:
    """A gRPC call in progress.

    Iterate over it to receive the messages of the response, or await `unary` for the only one. Both raise RpcError if
    the call fails.

    Args:
        connection: the connection.
        id: the id of its HTTP/2 stream.
        window: the initial flow control window of the stream in bytes.
        repeatable: whether the call has no side effects, so that it is ended if the server is unresponsive.

    Attributes:
        window: the bytes that the server accepts on the stream.
        pending: the data that has not been sent yet.
        last_sent: whether the pending data ends the request.
        ended: whether the call has ended.
    """

    __slots__ = (
        "_buffer",
        "_chunks",
        "_deadline",
        "_error",
        "_headers",
        "_messages",
        "_received",
        "_sent",
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
        self.window = window  # the flow control window of the stream: bytes that the server accepts
        self.repeatable = repeatable
        self.pending: deque[memoryview] = deque()  # data that has not been sent yet
        self.last_sent = False  # whether the pending data ends the request
        self.ended = False
        self._chunks: list[bytes] = []
        self._buffer = b""
        self._headers: dict[str, str] | None = None
        self._messages: deque[bytes] = deque()
        self._received = 0
        self._error: Failure[RpcError] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._sent: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- the caller's side

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Send a message, or queue it until flow control allows it. Do nothing if the call has ended.

        `last` marks the end of the request.
        """
        if not self.ended:
            self.queue(message, last=last)
            self.connection.flush(self)

    async def sent(self) -> None:
        """Wait until all messages have been sent, as far as flow control is concerned, or the call has ended.

        Only one caller may wait at a time.
        """
        while self.pending and not self.ended:
            self._sent = self.connection.loop.create_future()
            await self._sent

    def queue(self, message: bytes, *, last: bool) -> None:
        """Queue a message without sending it; `last` marks the end of the request."""
        self.pending.append(memoryview(_with_prefix(message)))
        self.last_sent = last

    def cancel(self, error: RpcError | None = None) -> None:
        """Reset the stream, and end the call with `error`; None means CANCELLED. Do nothing if the call has ended."""
        if not self.ended:
            self.connection.write(frames.reset(self.id, frames.CANCEL))
            self.end(error or RpcError(Code.CANCELLED, "cancelled"))

    async def unary(self, timeout: float) -> bytes:
        """Wait for the end of the call and return the only message of the response.

        Args:
            timeout: in seconds.

        Raises:
            RpcError: the call failed or timed out, or the response has no or several messages.
        """
        self._deadline = self.connection.loop.time() + timeout
        self._timer = self.connection.loop.call_later(
            min(timeout, self.connection.response_timeout), self._check_deadline
        )
        try:
            while not self.ended:
                self._open_window()
                await self._wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._timer.cancel()
        if self._error is not None:
            raise self._error.error()
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
                    raise self._error.error()
                raise StopAsyncIteration
            self._open_window()
            await self._wait()

    def _check_deadline(self) -> None:
        remaining = self._deadline - self.connection.loop.time()
        if remaining < _MOMENT:
            self.cancel(RpcError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded"))
            return
        self._timer = self.connection.loop.call_later(
            min(remaining, self.connection.response_timeout), self._check_deadline
        )
        self.connection.check_alive()

    async def _wait(self) -> None:
        self._waiter = self.connection.loop.create_future()
        await self._waiter

    def _parse(self) -> None:
        """Split the received bytes into messages, and append these to the queue from which the caller receives them.

        The bytes of an incomplete message are kept for the next call.

        Raises:
            RpcError: a message is compressed.
        """
        data = b"".join((self._buffer, *self._chunks))
        self._chunks.clear()
        start = 0
        while len(data) - start >= _PREFIX:
            if data[start]:
                raise RpcError(Code.INTERNAL, "a compressed message, which was not requested")
            end = start + _PREFIX + int.from_bytes(data[start + 1 : start + _PREFIX], "big")
            if end > len(data):
                break
            self._messages.append(data[start + _PREFIX : end])
            start = end
        self._buffer = data[start:]

    # --- the connection's side

    def on_headers(self, headers: dict[str, str], *, last: bool) -> None:
        """Handle the headers of the response, or its trailers, which contain the status.

        `last` is whether the stream ends.
        """
        if self._headers is None:
            self._headers = headers
            if headers.get(":status") != "200":
                self.cancel(error_from_http_status(headers.get(":status", "")))
                return
        if last:
            self.end(error_from_trailers(headers))

    def on_data(self, data: bytes, size: int, *, last: bool) -> None:
        """Handle received data.

        Args:
            data: the payload without padding.
            size: the bytes that the frame takes of the flow control window, including padding.
            last: whether the stream ends. It must end with trailers, so the call then fails.
        """
        self._received += size
        if self._received >= _REPLENISH and not last:
            self._open_window()
        if data:
            self._chunks.append(data)
        if last:
            self.end(RpcError(Code.INTERNAL, "server closed the stream without sending trailers"))
        elif data:
            _wake(self._waiter)

    def on_sent(self) -> None:
        """Wake the caller that waits until the messages are sent."""
        _wake(self._sent)

    def on_reset(self, reason: int) -> None:
        """End the call with the error for a reset by the server. `reason` is the HTTP/2 error code."""
        self.last_sent = True
        self.end(error_from_reset(reason))

    def end(self, error: RpcError | None) -> None:
        """End the call, with an error or, if it is None, successfully. Do nothing if it has ended.

        If the call is successful but the request is incomplete, the stream is reset.
        """
        if self.ended:
            return
        self.ended = True
        self._error = None if error is None else Failure(error)
        self.pending.clear()
        if not self.last_sent and error is None:
            self.connection.write(frames.reset(self.id, frames.NO_ERROR))
        self.connection.forget(self)
        _wake(self._waiter)
        _wake(self._sent)

    def _open_window(self) -> None:
        """Allow the server to send as much as was received, once that is a quarter of the window.

        A caller that waits for a message has received all others, so what was received since is part of the next one.
        It must be allowed even if the message is larger than the window.
        """
        if self._received >= min(_REPLENISH, self.connection.receive_window // 4) and not self.ended:
            self.connection.write(frames.window_update(self.id, self._received))
            self._received = 0


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _with_prefix(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message
