"""The two ends of a connection that is not passed on as it is: each tells what comes, and holds back the other where it is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Half(asyncio.Protocol):
    """Bytes that come before `receive` is set are kept for it."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.other: Half | None = None
        self.ended = asyncio.Event()
        self._receive: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []

    def receive_with(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        early, self._early = self._early, []
        for data in early:
            receive(data)

    def write(self, data: bytes) -> None:
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

    def pause_writing(self) -> None:
        other = self.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.resume_reading()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


def joined() -> tuple[Half, Half]:
    one, other = Half(), Half()
    one.other, other.other = other, one
    return one, other
