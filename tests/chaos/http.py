"""A small client that never retries, so that it is known whether a request may have taken effect.

It speaks HTTP/1.1 here, and HTTP/2 in http2.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit


class NotSent(Exception):
    """The connection failed, so the request had no effect."""


class NoAnswer(Exception):
    """The request may or may not have taken effect."""


class Shared(Protocol):
    """Connections to an address that all its clients share. The methods are those of `Connection`."""

    async def ask(
        self, address: Address, method: str, path: str, body: Any, content_type: str, timeout: float
    ) -> Answer: ...

    def stream(
        self, address: Address, method: str, path: str, body: Any, idle: float, timeout: float
    ) -> contextlib.AbstractAsyncContextManager[tuple[int, AsyncIterator[bytes]]]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and the credentials of the client: a certificate in `tls`, an Authorization header, or further
    headers.

    Attributes:
        shared: the HTTP/2 connections of all clients of the address. None if each client has an HTTP/1.1 connection.
    """

    url: str
    tls: ssl.SSLContext | None = None
    authorization: str = ""
    headers: tuple[str, ...] = ()
    shared: Shared | None = field(default=None, compare=False, repr=False)

    def request_headers(self, content_type: str) -> list[tuple[str, str]]:
        """Return the headers of a request. `content_type` is empty if it has no body."""
        headers = [("Accept", "application/json")]
        if self.authorization:
            headers.append(("Authorization", self.authorization))
        for line in self.headers:
            name, _, value = line.partition(": ")
            headers.append((name, value))
        if content_type:
            headers.append(("Content-Type", content_type))
        return headers


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


class Connection:
    """A client of a server.

    Over HTTP/1.1 it has a connection, which is opened when it is needed and closed at the first error. Over HTTP/2 it
    uses those that its address shares.
    """

    def __init__(self, address: Address, timeout: float = 10) -> None:
        self._address = address
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send a request and return the response. Raises NotSent and NoAnswer."""
        if self._address.shared is not None:
            return await self._address.shared.ask(self._address, method, path, body, content_type, self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await self._open()
        except (OSError, TimeoutError) as error:
            self.close()
            raise NotSent(repr(error)) from error
        try:
            async with asyncio.timeout(self._timeout):
                writer.write(self._head(method, path, body, content_type))
                await writer.drain()
                status, headers = await _head_of_answer(reader)
                content = b"".join([part async for part in _body(reader, headers)])
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            self.close()
            raise NoAnswer(repr(error)) from error
        except BaseException:
            self.close()
            raise
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, content)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, idle: float = 60
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Send a request and yield the status and the lines of the response, until its end or until no line came for
        `idle` seconds.

        Raises:
            NotSent: the connection failed.
            NoAnswer: no response came.
        """
        if self._address.shared is not None:
            async with self._address.shared.stream(self._address, method, path, body, idle, self._timeout) as streamed:
                yield streamed
            return
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await self._open()
                writer.write(self._head(method, path, body, "application/json"))
                await writer.drain()
                status, headers = await _head_of_answer(reader)
            yield status, _lines(reader, headers, idle)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            raise NoAnswer(repr(error)) from error
        finally:
            self.close()

    def _head(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(self._address.url).netloc}"]
        headers = self._address.request_headers(content_type if body is not None else "")
        lines += [f"{name}: {value}" for name, value in headers]
        if body is not None:
            lines.append(f"Content-Length: {len(content)}")
        return "\r\n".join([*lines, "", ""]).encode() + content

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None or self._streams[0].at_eof() or self._streams[1].is_closing():
            self.close()
            parts = urlsplit(self._address.url)
            self._streams = await asyncio.open_connection(
                parts.hostname, parts.port, ssl=self._address.tls, limit=1 << 24
            )
        return self._streams

    def close(self) -> None:
        if self._streams is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is already closed
                self._streams[1].transport.abort()
            self._streams = None


async def _head_of_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    return int(head[0].split(" ", 2)[1]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    elif length := int(headers.get("content-length", 0)):
        yield await reader.readexactly(length)


async def _lines(reader: asyncio.StreamReader, headers: dict[str, str], idle: float) -> AsyncIterator[bytes]:
    rest = b""
    parts = _body(reader, headers)
    with contextlib.suppress(StopAsyncIteration):
        while True:
            async with asyncio.timeout(idle):
                part = await anext(parts)
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line:
                    yield line
