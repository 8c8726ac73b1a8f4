"""A client that sends messages to a server and reads the responses. It never repeats a request."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from stall import http2
from stall.message import Message
from stall.outcome import Outcome

TIMEOUT: Final = 90.0
_LIMIT: Final = 1 << 24


class Client:
    """A user of a server. Every message has connections of its own.

    Args:
        http2: whether `send` uses HTTP/2.
    """

    def __init__(self, url: str, ca: str, token: str = "", *, http2: bool = False) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 443
        self.token = token
        self._tls = ssl.create_default_context(cafile=ca)
        self._tls.check_hostname = False
        self._http2 = http2
        if http2:
            self._tls.set_alpn_protocols(["h2"])

    async def send(self, messages: Sequence[Message]) -> Outcome:
        """Send one message after the other, and return the last outcome, with the time that all took."""
        began = time.monotonic()
        unread: list[Callable[[], None]] = []
        last = Outcome()
        try:
            for message in messages:
                if self._http2:
                    last = await self._over_http2(message, unread)
                else:
                    outcomes = await asyncio.gather(*(self._once(message, unread) for _ in range(message.parallel)))
                    last = outcomes[-1]
        finally:
            for close in unread:
                close()
        last.seconds = time.monotonic() - began
        return last

    async def ask(self, method: str, path: str, body: Any = None) -> Outcome:
        """Send a small request with a JSON body."""
        return await self.send([Message(method, path, body=None if body is None else orjson.dumps(body))])

    async def ask_all(self, asked: Iterable[tuple[str, str, Any]]) -> list[int]:
        """Send small requests (method, path, JSON body) on one connection, and return the statuses."""
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self._tls, limit=_LIMIT)
        statuses = []
        for method, path, body in asked:
            writer.write(Message(method, path, body=orjson.dumps(body)).encode(f"{self.host}:{self.port}", self.token))
            outcome = Outcome()
            await _read(reader, outcome, False)
            statuses.append(outcome.status)
        writer.transport.abort()
        return statuses

    async def _over_http2(self, message: Message, unread: list[Callable[[], None]]) -> Outcome:
        try:
            async with asyncio.timeout(TIMEOUT):
                return await http2.exchange(message, self.host, self.port, self._tls, self.token, unread)
        except (OSError, TimeoutError):
            return Outcome()

    async def _once(self, message: Message, unread: list[Callable[[], None]]) -> Outcome:
        outcome = Outcome()
        reader = writer = None
        try:
            async with asyncio.timeout(TIMEOUT):
                limit = 1 << 16 if message.unread else _LIMIT
                reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self._tls, limit=limit)
                writing = asyncio.create_task(
                    _write(writer, message, message.encode(f"{self.host}:{self.port}", self.token))
                )
                try:
                    if message.unread:
                        unread.append(writer.transport.abort)
                        await writing
                        await asyncio.sleep(2)
                    else:
                        for _ in range(message.copies):
                            await _read(reader, outcome, message.method == "HEAD")
                finally:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
        except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError):
            pass
        finally:
            if writer is not None and not message.unread:
                writer.transport.abort()
        return outcome


async def _write(writer: asyncio.StreamWriter, message: Message, data: bytes) -> None:
    step = message.segment or 1 << 20
    for _ in range(message.copies):
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            if message.segment:
                await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader, outcome: Outcome, head_only: bool) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    outcome.status = int(head[0].split(" ", 2)[1])
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    if outcome.status == 101 or head_only:
        return
    parts: list[bytes] = []
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size + 2))
            outcome.received += size
        await reader.readexactly(2)
    elif length := int(headers.get("content-length", 0)):
        parts.append(await reader.readexactly(length))
        outcome.received += length
    outcome.body = b"".join(parts)[:2000]
