"""Transports that replace the one of an HTTP connection: for an upgrade, and after the connection was lost.

`HijackedConnection` is the raw connection that an upgrade has taken from the HTTP protocol. `CLOSED_TRANSPORT` replaces
the transport of a protocol whose connection was lost. A TLS transport of uvloop keeps the methods of its protocol after
`connection_lost`. If the protocol kept the transport too, every closed connection would be a reference cycle that waits
for the garbage collector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final


class _ClosedTransport(asyncio.Transport):
    def is_closing(self) -> bool:
        return True

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def write(self, data: Any) -> None: ...

    def writelines(self, list_of_data: Iterable[Any]) -> None: ...

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


CLOSED_TRANSPORT: Final = _ClosedTransport()


class HijackedConnection:
    """The raw connection of an upgrade. Nothing is read from it until `take_over`.

    Args:
        transport: the transport of the connection, paused.
        early: the bytes that the client sent after the upgrade request.
        on_taken_over: called when another protocol takes the connection.
    """

    def __init__(self, transport: asyncio.Transport, early: bytes, on_taken_over: Callable[[], None]) -> None:
        self.transport: Any = transport
        self.early = early
        self._on_taken_over = on_taken_over

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the transport and resume reading. It first receives the early bytes."""
        self.transport.set_protocol(protocol)
        self._on_taken_over()
        protocol.connection_made(self.transport)
        data, self.early = self.early, b""
        if data:
            protocol.data_received(data)
        self.transport.resume_reading()
