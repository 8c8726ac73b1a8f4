"""Two protocols for a proxy that transforms the data on the way.

The proxy receives the data of each end and writes the result to the other. Reading from one end pauses while the buffer
of the other is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tetrapod.generic.proxy.held_protocol import HeldProtocol
from tetrapod.generic.proxy.throttle import Throttle


class PipeEnd(HeldProtocol):
    """The protocol of one of the two connections (client and backend) of a proxy that transforms data.

    Bytes that arrive before `receive_with` is called are buffered. `peer` is None once this connection is lost.

    Attributes:
        ended: set when the connection is lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()
        self._receive: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []

    def receive_with(self, receive: Callable[[bytes], None]) -> None:
        """Call `receive` with the data that arrives, beginning with the buffered bytes."""
        self._receive = receive
        early, self._early = self._early, []
        for data in early:
            receive(data)
        if self.ended.is_set():
            self._receive = None

    def data_received(self, data: bytes) -> None:
        if self._receive is None:
            self._early.append(data)
        else:
            self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        self._receive = self.peer = None  # both refer back to this object

    def close(self) -> None:
        """Close the connection after its buffer was sent, and ignore bytes that still arrive."""
        self._receive = _drop
        if self.transport is not None:
            self.transport.close()


def _drop(_: bytes) -> None: ...


async def wait_for_any(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def wait_for_delivery(receiver: PipeEnd, *throttles: Throttle) -> None:
    """Wait until the throttles have delivered all data to `receiver`, or `receiver` has ended."""
    for throttle in throttles:
        delivered = asyncio.Event()
        throttle.then(delivered.set)
        await wait_for_any(delivered, receiver.ended)


def pipe_ends() -> tuple[PipeEnd, PipeEnd]:
    """Return two new ends, for the client's and the backend's connection, each the `peer` of the other."""
    first, second = PipeEnd(), PipeEnd()
    first.peer, second.peer = second, first
    return first, second
