"""Sockets whose data is relayed to and from a connection that is not a plain socket, such as a TLS connection.

So the clients (`proxy` and `rpc`) use every connection by way of a proxy like a direct one, also for TLS inside it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Final, Protocol

log = logging.getLogger(__name__)

_PIECE: Final = 1 << 16
_DELIVERED: Final = 1 << 14
"""Bytes that the reader must take within the read timeout."""
_running: Final[set[asyncio.Task[None]]] = set()


class Connection(Protocol):
    """A connection by way of a proxy. Its methods raise OSError if it has failed."""

    async def receive(self) -> bytes:
        """Return the next data of the server; b"" at its end."""
        ...

    async def send(self, data: bytes) -> None:
        """Send data to the server, and return once more can be sent."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class StreamConnection:
    """A `Connection` over asyncio's streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self) -> bytes:
        return await self._reader.read(_PIECE)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()


def relay(connection: Connection, read_timeout: float | None = None) -> socket.socket:
    """Return a socket whose data is relayed until it or the connection is closed. Then both are closed.

    Args:
        connection: the connection.
        read_timeout: the seconds after which both are closed if the reader of the socket takes no data; None for no
            limit.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    task = asyncio.create_task(_relay(ours, connection, read_timeout), name="egress relay")
    _running.add(task)
    task.add_done_callback(_running.discard)
    return theirs


async def _relay(ours: socket.socket, connection: Connection, read_timeout: float | None) -> None:
    directions = (
        asyncio.create_task(_send(ours, connection)),
        asyncio.create_task(_receive(ours, connection, read_timeout)),
    )
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        ours.close()
        with suppress(OSError):
            await connection.close()


async def _send(ours: socket.socket, connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await loop.sock_recv(ours, _PIECE):
            await connection.send(data)


async def _receive(ours: socket.socket, connection: Connection, read_timeout: float | None) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await connection.receive():
            for start in range(0, len(data), _DELIVERED):
                try:
                    async with asyncio.timeout(read_timeout):
                        await loop.sock_sendall(ours, data[start : start + _DELIVERED])
                except TimeoutError:
                    log.error("closing a connection by way of a proxy: nothing was read from it for %s s", read_timeout)
                    return
