"""`Exchange`: a request and its response, over either version of HTTP.

The body of a response is either read by the caller (`chunk`, `read`) or piped into a client's `StreamWriter` as it
arrives. In both cases the backend must wait while too much data is buffered.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from tetrapod.generic.http.request import HeaderList, StreamWriter
from tetrapod.machinery.failure import Failure

HIGH_WATER: Final = 256 * 1024
PIECE: Final = 256 * 1024
"""The number of bytes that are piped before the client's writer is awaited, so that other tasks of the event loop can
run.
"""
READ_AHEAD: Final = 64 * 1024
"""The maximum number of bytes of a response body that are buffered before the caller reads it. Reading from the backend
then pauses.
"""
MAX_HEAD: Final = 10 << 20
"""The maximum size of a response's headers, and of its trailers (net/http: Transport.MaxResponseHeaderBytes)."""
MAX_1XX: Final = 5
"""The maximum number of informational responses before the final one (net/http before Go 1.23: max1xxResponses)."""


class BackendError(Exception):
    """The backend could not be reached, the connection broke, or the response is malformed. The text is Go's.

    Attributes:
        no_response: whether no byte of a response had arrived.
        unsent: whether a request of any method can be sent again: nothing was sent, or the backend has declared that it
            did not process the request and the whole body is still there.
    """

    def __init__(self, message: str, *, no_response: bool = False, unsent: bool = False) -> None:
        super().__init__(message)
        self.no_response = no_response
        self.unsent = unsent


class Exchange(ABC):
    """A request and its response. Subclasses carry it over a connection.

    Attributes:
        sender: the task that sends the body of the request; None if no such task is running.
        lost: whether the connection or the stream of the exchange has ended.
        used: whether the connection has carried an exchange before.
        status: the status code of the response; 0 before its head has arrived.
        headers: the headers of the response.
        trailers: the trailers of the response.
        complete: whether the whole response has arrived.
    """

    def __init__(self) -> None:
        self.used = False
        self.lost = False
        self.sender: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._clear()

    def _clear(self) -> None:
        """Reset the state of the response, before the connection carries another exchange."""
        self.status = 0
        self.headers: HeaderList = []
        self.trailers: HeaderList = []
        self.complete = False
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._error: Failure[Exception] | None = None
        self._writer: StreamWriter | None = None
        self._pieces: list[bytes] = []  # of the body in the received data that is being parsed, for the writer
        self._piped = 0  # the number of bytes since the writer was last awaited
        self._head: asyncio.Future[None] | None = None
        self._signal: asyncio.Future[None] | None = None

    # --- the request

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send a part of the request body, and wait while the backend does not take it.

        Do nothing if the exchange is lost.
        """

    @abstractmethod
    def end_request(self) -> None:
        """Send the end of the request, after its last part was passed to `send`."""

    @abstractmethod
    def fail_request_body(self, error: Exception) -> None:
        """Abort the exchange because the rest of the request body cannot be read.

        `wait_for_head` then raises `error`; after the head, reading the response raises a BackendError.
        """

    # --- the response

    async def wait_for_head(self) -> None:
        """Wait until `status` and `headers` of the response are set.

        Raises:
            BackendError: the connection broke or the response is malformed.
            Exception: reading the body of the request failed with this error.
        """
        if self.status == 0 and self._error is None:
            self._head = self._loop.create_future()
            await self._head
        if self.status == 0:
            raise self._error.error() if self._error is not None else BackendError("no answer")

    async def read(self, limit: int = 1 << 30) -> bytes:
        """Read the response body to its end, and return it without the pieces that `chunk` has returned.

        Raises:
            BackendError: the connection broke, or the body is larger than `limit` bytes.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                self.close()
                raise BackendError(f"the answer is larger than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def chunk(self) -> bytes:
        """Wait for the next piece of the body and return it; b"" at its end.

        Raises:
            BackendError: the connection broke.
        """
        while not self._chunks:
            if self.complete:
                self._release()
                return b""
            if self._error is not None:
                raise self._error.error()
            self._resume()
            await self._wait()
        data = self._chunks.popleft()
        self._size -= len(data)
        return data

    def complete_body(self) -> bytes | None:
        """Return the unread rest of the body if the whole body has arrived; otherwise None.

        The body then counts as read, so the connection may carry another request.
        """
        if not self.complete:
            return None
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._release()
        return data

    async def pipe(self, writer: StreamWriter) -> None:
        """Write the body to `writer` as it arrives, and return at its end.

        Reading from the backend pauses while the writer's buffer is full.

        Raises:
            BackendError: the connection broke.
        """
        if self._chunks:
            writer.write(b"".join(self._chunks))
            self._chunks.clear()
        self._size = 0
        self._writer = writer
        while not self.complete:
            if self._error is not None:
                raise self._error.error()
            if self._paused:
                self._piped = 0
                await writer.drain()
                self._resume()
            else:
                await self._wait()
        self._release()

    @abstractmethod
    def close(self) -> None:
        """Abort the exchange. The response can no longer be read."""

    def detach(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the transport after a 101. It first receives the data that has already arrived.

        If the backend has closed the connection, `protocol` then loses it at once.

        Raises:
            BackendError: the exchange shares its connection with others.
        """
        raise BackendError("the connection is shared with other requests")

    # --- for subclasses

    def _add_body(self, body: bytes) -> None:
        """Buffer a piece of the response body for `chunk`, or for the writer of `pipe`.

        With a writer, the caller must call `_write_pieces` when all received data has been parsed.
        """
        if self._writer is not None:
            self._pieces.append(body)
            return
        self._chunks.append(body)
        self._size += len(body)
        if self._size >= READ_AHEAD:
            self._pause()
        if self._signal is not None:
            self._wake()

    def _write_pieces(self) -> None:
        """Write the pieces that `_add_body` has collected to the writer of `pipe`, joined to one write.

        Pause reading from the backend if the writer's buffer is full, or if other tasks of the event loop must run.
        """
        assert self._writer is not None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._writer.write(body)
        self._piped += len(body)
        if self._piped > PIECE or self._writer.buffered() > HIGH_WATER:
            self._pause()
            self._wake()

    @abstractmethod
    def _pause(self) -> None:
        """Stop reading the response from the backend, and set `_paused`.

        Subclasses implement it.
        """

    @abstractmethod
    def _resume(self) -> None:
        """Continue to read the response from the backend after `_pause`, and unset `_paused`.

        Subclasses implement it.
        """

    @abstractmethod
    def _release(self) -> None:
        """Make the connection available for another exchange, because the caller has read the whole response.

        Subclasses implement it.
        """

    def _head_arrived(self) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = Failure(error)
        self._head_arrived()
        self._wake()

    async def _wait(self) -> None:
        self._signal = self._loop.create_future()
        await self._signal

    def _wake(self) -> None:
        signal, self._signal = self._signal, None
        if signal is not None and not signal.done():
            signal.set_result(None)
