"""Messages over HTTP/2. Copies of a message, on one connection or several, become streams of one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from stall.message import Message
from stall.outcome import Outcome
from support.http2_shared import SharedConnection
from support.http2_streams import HOP_BY_HOP, Stream, StreamReset

_UNREAD: Final = 2.0
"""Seconds for which the server may send what nobody reads, before the next message."""


def carried(message: Message) -> bool:
    """Return whether HTTP/2 can carry a message: it has no upgrade, and no headers of an HTTP/1.1 connection."""
    return not message.trailing and not any(
        name.lower() in HOP_BY_HOP and name.lower() != "host" for name, _ in message.headers
    )


class _Segmented(SharedConnection):
    """A connection that writes a few bytes at a time.

    Args:
        segment: the bytes of each write; 0 for any number.
    """

    def __init__(self, authority: str, segment: int) -> None:
        super().__init__(authority)
        self._segment = segment
        self._unwritten = bytearray()
        self._writing: asyncio.Task[None] | None = None

    def _write(self, data: bytes) -> None:
        if not self._segment:
            super()._write(data)
            return
        self._unwritten += data
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_segments())

    async def _write_segments(self) -> None:
        at = 0
        while at < len(self._unwritten) and not self.finished:
            super()._write(bytes(self._unwritten[at : at + self._segment]))
            at += self._segment
            if at > 1 << 16:
                del self._unwritten[:at]
                at = 0
            await asyncio.sleep(0)
        self._unwritten.clear()


async def exchange(
    message: Message, host: str, port: int, tls: ssl.SSLContext, token: str, unread: list[Callable[[], None]]
) -> Outcome:
    """Send all copies of a message over one connection, and return the last answer.

    Args:
        unread: gets the function that closes the connection of a message whose answers are left unread.
    """
    outcome, copies = Outcome(), message.copies * message.parallel
    connection = await _Segmented.open(host, port, tls, segment=message.segment)
    try:
        if message.chunk:
            connection.limit_data(message.chunk)
        if message.unread:
            unread.append(connection.close)
            for _ in range(copies):
                _request(connection, message, token)
            connection.stop_reading()
            await asyncio.sleep(_UNREAD)
            return outcome
        waiting: list[Stream] = []
        for _ in range(copies):
            while not connection.usable and waiting:
                await _receive(connection, waiting.pop(0), outcome)
            waiting.append(_request(connection, message, token))
        for stream in waiting:
            await _receive(connection, stream, outcome)
    except StreamReset:
        pass
    finally:
        if not message.unread:
            connection.close()
    return outcome


def _request(connection: SharedConnection, message: Message, token: str) -> Stream:
    if not connection.usable:
        raise StreamReset("the server takes no more requests")
    headers = list(message.headers)
    if token and "authorization" not in {name.lower() for name, _ in headers}:
        headers.append(("authorization", f"Bearer {token}"))
    if message.body is not None:
        headers.append(("content-type", message.media_type))
        if not message.chunk:
            headers.append(("content-length", str(len(message.body))))
    return connection.request(message.method, message.path, headers, message.body)


async def _receive(connection: SharedConnection, stream: Stream, outcome: Outcome) -> None:
    outcome.status = await connection.head(stream)
    body = await connection.read(stream)
    outcome.received += len(body)
    outcome.body = body[:2000]
