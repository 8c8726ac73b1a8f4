"""A direct connection between two transports: data that arrives at one is written to the other, with back pressure."""

from __future__ import annotations

import asyncio

from tetrapod.generic.proxy.held_protocol import HeldProtocol
from tetrapod.generic.proxy.throttle import Throttle


class _SpliceEnd(HeldProtocol):
    def __init__(self, ended: asyncio.Future[None]) -> None:
        super().__init__()
        self._ended = ended
        self._buffered: list[bytes] = []
        self._throttle: Throttle | None = None

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            if not self._ended.done():
                self._buffered.append(data)
        elif self._throttle is None:
            self.peer.write(data)
        else:
            self._throttle.send(data)

    def join(self, peer: _SpliceEnd, rate: int) -> None:
        """Pass data on to `peer` from now on, at most `rate` bytes per second; 0 for no limit."""
        self.peer = peer
        if rate > 0:
            self._throttle = Throttle(rate, peer.write, self)
        buffered, self._buffered = self._buffered, []
        for data in buffered:
            self.data_received(data)

    def end(self) -> None:
        """Close the connection after its buffer was sent, and drop data that still arrives."""
        self.peer = None
        if self._throttle is not None:
            self._throttle.close()
            self._throttle = None
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._throttle is None:
            self._set_ended()
        else:
            self._throttle.then(self._set_ended)

    def _set_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class Splice:
    """Two protocols that forward data to each other, `client` and `backend`.

    Attach each to its transport (set_protocol and connection_made), then await `run`.

    Args:
        rate: the limit of bytes per second in each direction; 0 for none.
    """

    def __init__(self, rate: int = 0) -> None:
        self._rate = rate
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.client = _SpliceEnd(self._ended)
        self.backend = _SpliceEnd(self._ended)

    async def run(self) -> None:
        """Forward data in both directions until one connection closes.

        Then send the data that is buffered and close both.
        """
        self.client.join(self.backend, self._rate)
        self.backend.join(self.client, self._rate)
        try:
            await self._ended
        finally:
            self.client.end()
            self.backend.end()
