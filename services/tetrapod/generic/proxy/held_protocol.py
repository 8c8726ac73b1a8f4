"""The base of protocols that pass data on.

Objects stop its reading with `hold`, and it continues when each of them has released it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tetrapod.generic.proxy.paused_reading import pause_reading, resume_reading


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
            pause_reading(self.transport)
        self._holders.add(id(holder))

    def release(self, holder: object) -> None:
        """Continue to read unless another object holds it. Do nothing if `holder` does not hold it."""
        if id(holder) not in self._holders:
            return
        self._holders.discard(id(holder))
        if not self._holders and self.transport is not None and not self.transport.is_closing():
            resume_reading(self.transport)

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
