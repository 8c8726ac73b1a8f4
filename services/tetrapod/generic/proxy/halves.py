"""The two ends of a connection whose data is transformed on the way. Each passes on what it receives, with back pressure from the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Half(asyncio.Protocol):
    """One end of the connection. Bytes that arrive before `receive_with` is called are buffered."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.other: Half | None = None
        self.ended = asyncio.Event()
        self._receive: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []

    def receive_with(self, receive: Callable[[bytes], None]) -> None:
        """Set the function that receives the data, beginning with the buffered bytes."""
        self._receive = receive
        early, self._early = self._early, []
        for data in early:
            receive(data)
        if self.ended.is_set():
            self._receive = None

    def write(self, data: bytes) -> None:
        """Write data unless the connection is closing."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._receive is None:
            self._early.append(data)
        else:
            self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        self._receive = self.other = None  # both refer back to this object

    def pause_writing(self) -> None:
        other = self.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.resume_reading()

    def close(self) -> None:
        """Close the connection and drop bytes that still arrive."""
        self._receive = _drop
        if self.transport is not None:
            self.transport.close()


def _drop(_: bytes) -> None: ...


def joined() -> tuple[Half, Half]:
    """Return two ends that refer to each other."""
    one, other = Half(), Half()
    one.other, other.other = other, one
    return one, other
