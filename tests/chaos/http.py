"""A small HTTP/1.1 client that never retries, so that it is known whether a request may have taken effect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


class NotSent(Exception):
    """The connection failed, so the request had no effect."""


class NoAnswer(Exception):
    """The request may or may not have taken effect."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and the credentials of the client: a certificate in `tls`, an Authorization header, or further
    headers.
    """

    url: str
    tls: ssl.SSLContext | None = None
    authorization: str = ""
    headers: tuple[str, ...] = ()


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
    """A connection that is opened when it is needed and closed at the first error."""

    def __init__(self, address: Address, timeout: float = 10) -> None:
        self._address = address
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send a request and return the response. Raises NotSent and NoAnswer."""
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
        lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(self._address.url).netloc}", "Accept: application/json"]
        if self._address.authorization:
            lines.append(f"Authorization: {self._address.authorization}")
        lines += self._address.headers
        if body is not None:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(content)}"]
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
