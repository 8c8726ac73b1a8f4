"""The base of protocols that pass data on.

Objects stop its reading with `hold`, and it continues when each of them has released it.
"""

from __future__ import annotations

import asyncio
from typing import Any


class HeldProtocol(asyncio.Protocol):
    """A protocol whose transport several objects may stop from reading.

    Attributes:
        transport: the transport; None before `connection_made`.
        peer: the protocol of the other connection, which is not read while writing to this one must pause; None if
            there is none.
    """

    def __init__(self) -> None:
        self.transport: Any = None
        self.peer: HeldProtocol | None = None
        self._holders: set[int] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def hold(self, holder: object) -> None:
        """Stop reading until `holder` releases it."""
        if not self._holders and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
            _limit_read_buffer(self.transport, 1, 0)
        self._holders.add(id(holder))

    def release(self, holder: object) -> None:
        """Continue to read unless another object holds it. Do nothing if `holder` does not hold it."""
        if id(holder) not in self._holders:
            return
        self._holders.discard(id(holder))
        if not self._holders and self.transport is not None and not self.transport.is_closing():
            _limit_read_buffer(self.transport, None, None)
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Write data to this connection, unless it is closing."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.hold(self)

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.release(self)


def _limit_read_buffer(transport: Any, high: int | None, low: int | None) -> None:
    """Set the read buffer limits of a TLS transport, beyond which it stops reading from its socket while it is paused.

    A TLS transport of uvloop that reaches the end of its socket while it is paused discards the data that it has not
    passed on. With a limit of one byte it does not reach the end before it has passed on the data that precedes it. Do
    nothing if the transport has no such limits.

    Args:
        transport: the transport.
        high: the bytes in the buffer above which reading stops; None for the default.
        low: the bytes below which it continues; None for the default.
    """
    if (set_limits := getattr(transport, "set_read_buffer_limits", None)) is not None:
        set_limits(high, low)
