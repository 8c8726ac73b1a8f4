"""Sockets whose data is relayed to and from a connection that is not a plain socket, such as a TLS connection.

So the clients (`proxy` and `rpc`) use every connection by way of a proxy like a direct one, also for TLS inside it.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

_PIECE: Final = 1 << 16
_running: Final[set[asyncio.Task[None]]] = set()


def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> socket.socket:
    """Return a socket whose data is relayed until it or the connection is closed. Then both are closed.

    Args:
        reader: reads from the connection.
        writer: writes to the connection.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    task = asyncio.create_task(_relay(ours, reader, writer), name="egress relay")
    _running.add(task)
    task.add_done_callback(_running.discard)
    return theirs


async def _relay(ours: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    directions = (asyncio.create_task(_send(ours, writer)), asyncio.create_task(_receive(ours, reader)))
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        ours.close()
        writer.close()


async def _send(ours: socket.socket, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await loop.sock_recv(ours, _PIECE):
            writer.write(data)
            await writer.drain()


async def _receive(ours: socket.socket, reader: asyncio.StreamReader) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            await loop.sock_sendall(ours, data)
