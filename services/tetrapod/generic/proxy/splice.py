"""A direct connection between two transports: data that arrives at one is written to the other, with back pressure."""

from __future__ import annotations

import asyncio
from typing import Any


class _SpliceEnd(asyncio.Protocol):
    def __init__(self, ended: asyncio.Future[None]) -> None:
        self.transport: Any = None
        self.peer: _SpliceEnd | None = None
        self._ended = ended
        self._buffered: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        peer = self.peer
        if peer is not None and peer.transport is not None:
            if not peer.transport.is_closing():
                peer.transport.write(data)
        elif not self._ended.done():
            self._buffered.append(data)

    def join(self, peer: _SpliceEnd) -> None:
        self.peer = peer
        buffered, self._buffered = self._buffered, []
        for data in buffered:
            peer.transport.write(data)

    def pause_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class Splice:
    """Two protocols that forward data to each other, `client` and `backend`.

    Attach each to its transport (set_protocol and connection_made), then await `run`.
    """

    def __init__(self) -> None:
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.client = _SpliceEnd(self._ended)
        self.backend = _SpliceEnd(self._ended)

    async def run(self) -> None:
        """Forward data in both directions until one connection closes.

        Then send the data that is buffered and close both.
        """
        self.client.join(self.backend)
        self.backend.join(self.client)
        try:
            await self._ended
        finally:
            for end in (self.client, self.backend):
                end.peer = None
                if end.transport is not None:
                    end.transport.close()
