"""`IncomingBody`: the buffer of a request body between its connection and its handler.

The connection appends the pieces of the body, and the handler reads them.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Final

from tetrapod.generic.http.request import ClientGone
from tetrapod.machinery.status import StatusError, request_entity_too_large

HIGH_WATER: Final = 65536
"""Unread bytes of a request body in memory beyond which reading from the connection pauses."""
SMALL: Final = 512
"""Pieces shorter than this many bytes are appended to the previous piece: a body in chunks of one byte had three
million pieces.
"""
_MALFORMED: Final = "malformed chunked encoding"
"""Upstream answers with the same text and code 500, because it treats every failure to read the body as an internal
error.
"""
_REASONS: Final = {
    "Invalid character in chunk size": "invalid byte in chunk length",
    "Chunk size overflow": "http chunk length too large",
}
"""Texts of Go's net/http/internal/chunked.go, by those of the parser."""


class IncomingBody:
    """The body of a request, as a BodyReader. The connection appends pieces to it.

    It is a base class: `Exchange` (exchange.py) sets its fields, so that each request needs one object instead of two.

    Attributes:
        length: the Content-Length of the request; -1 if the header is missing.
        complete: whether the whole body has arrived.
        broken: the error of received bytes that are not a valid body; "" for valid ones.
        expects_continue: whether the client expects `100 Continue`, and it has not been sent.
        gone: whether the client has closed the connection.
        done: whether the response has been sent: further pieces of the body are discarded.
        keep_alive: whether the connection stays open after the response.
    """

    __slots__ = (
        "_chunks",
        "_pending",
        "_waiter",
        "broken",
        "complete",
        "done",
        "expects_continue",
        "gone",
        "keep_alive",
        "length",
    )

    length: int
    complete: bool
    broken: str
    expects_continue: bool
    gone: bool
    done: bool
    keep_alive: bool
    _chunks: list[bytes | bytearray]
    _pending: int
    _waiter: asyncio.Future[None] | None

    # --- from the subclasses

    @abstractmethod
    def _pause_reading(self) -> None:
        """Ask for no more data, because the handler is slower than the client."""

    @abstractmethod
    def _request_more(self) -> None:
        """Ask the client for more data."""

    @abstractmethod
    def _send_continue(self) -> None:
        """Send `100 Continue`."""

    @abstractmethod
    async def _reserve(self, size: int) -> None:
        """Reserve memory for a body of `size` bytes, waiting until it is free.

        Raises:
            StatusError: 429, the memory is not free for a long time.
        """

    # --- from the connection

    def feed(self, data: bytes) -> None:
        """Append a piece of the body, and pause reading from the connection if more than HIGH_WATER bytes are unread.

        After the response the piece is discarded.
        """
        if self.done:
            return
        if len(data) < SMALL and self._chunks and len(last := self._chunks[-1]) < HIGH_WATER:
            if isinstance(last, bytearray):
                last += data
            else:
                self._chunks[-1] = bytearray(last) + data
        else:
            self._chunks.append(data)
        self._pending += len(data)
        if self._pending > HIGH_WATER:
            self._pause_reading()
        self._wake()

    def accepts_more(self) -> bool:
        """Return whether at most `HIGH_WATER` bytes are unread, so that reading from the connection need not pause."""
        return self._pending <= HIGH_WATER

    def end_of_body(self) -> None:
        """Mark the body as complete, after its last piece was appended."""
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def mark_body_malformed(self, reason: str) -> None:
        """Mark the body as malformed.

        Reads then raise StatusError 500 after the pieces that have arrived, and the connection closes after the
        response.

        Args:
            reason: the text of the parser's error; "" for none.
        """
        self.broken = _REASONS.get(reason, _MALFORMED)
        self.keep_alive = False
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- to the handler

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Memory for a body of more than HIGH_WATER bytes is reserved first, until the handler returns
        (request_bodies.py). If the client expects `100 Continue`, it is sent before, as Go does even if the body has
        arrived.

        Raises:
            StatusError: 413 if the body is longer than `limit` bytes, 500 if it is malformed, 429 if too many bodies
                are in progress.
            ClientGone: the client closed the connection before the end of the body.
        """
        if self.length > limit:
            raise request_entity_too_large(f"limit is {limit}")
        reserved = self.length
        if reserved > HIGH_WATER:
            await self._reserve(reserved)
        if self.expects_continue:
            self._meet_expectation()
        pieces: list[bytes | bytearray] = []
        size = 0
        while True:
            size += sum(map(len, self._chunks))
            pieces += self._chunks
            self._chunks.clear()
            self._pending = 0
            if size > limit:
                raise request_entity_too_large(f"limit is {limit}")
            if size > HIGH_WATER and reserved < 0:  # a body in chunks
                reserved = size if self.complete else limit
                await self._reserve(reserved)
            if self.complete and not self._chunks:
                return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
            if not self._chunks:
                await self._wait_for_data()

    async def chunk(self) -> bytes:
        """Wait for the next piece of the body and return it; b"" at the end. Send `100 Continue` first, as `read` does.

        Raises:
            StatusError: 500, the body is malformed.
            ClientGone: the client closed the connection before the end of the body.
        """
        if self.expects_continue:
            self._meet_expectation()
        while not self._chunks:
            if self.complete:
                return b""
            await self._wait_for_data()
        data = bytes(self._chunks.pop(0))
        self._pending -= len(data)
        return data

    def _meet_expectation(self) -> None:
        self.expects_continue = False
        if not self.gone:
            self._send_continue()

    async def _wait_for_data(self) -> None:
        """Wait for the next piece or the end of the body.

        Raises:
            StatusError: 500, the body is malformed.
            ClientGone: the client closed the connection.
        """
        if self.gone:
            raise ClientGone
        if self.broken:
            raise StatusError(500, "", self.broken)
        self._request_more()
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        if self.gone and not self._chunks and not self.complete:
            raise ClientGone
        if self.broken and not self._chunks:
            raise StatusError(500, "", self.broken)
