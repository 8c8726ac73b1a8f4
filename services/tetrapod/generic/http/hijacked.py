"""`HijackedConnection`: a connection that an upgrade has taken from the HTTP protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class HijackedConnection:
    """The raw connection of an upgrade. Nothing is read from it until `take_over`.

    Args:
        transport: the transport of the connection.
        early: the bytes that the client sent after the upgrade request.
        on_taken_over: called once another protocol has the connection.
    """

    def __init__(self, transport: asyncio.Transport, early: bytes, on_taken_over: Callable[[], None]) -> None:
        self.transport: Any = transport
        self.early = early
        self._on_taken_over = on_taken_over

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Let `protocol` receive from now on, first the bytes that came early."""
        self.transport.set_protocol(protocol)
        self._on_taken_over()
        protocol.connection_made(self.transport)
        data, self.early = self.early, b""
        if data:
            protocol.data_received(data)
        self.transport.resume_reading()
