"""A small HTTP/1.1 client that sends requests in parallel over a few TLS connections, to create objects and to count
bytes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def object(self) -> Any:
        return orjson.loads(self.body)


class Rejected(Exception):
    """An unexpected response, after which the benchmark cannot continue."""


class Client:
    """A server.

    Each `connection()` opens one TCP connection; certificates are not verified, because this is loopback.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 443
        self.token = token
        self.context = ssl._create_unverified_context()

    async def connection(self) -> Connection:
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.context, limit=1 << 20)
        return Connection(self, reader, writer)

    async def request(
        self, method: str, path: str, obj: Any = None, content_type: str = "application/json", encoding: str = ""
    ) -> Answer:
        connection = await self.connection()
        try:
            return await connection.request(method, path, obj, content_type, encoding=encoding)
        finally:
            connection.close()

    async def create(self, path: str, obj: Any) -> None:
        """Create an object by POST. It may exist already."""
        answer = await self.request("POST", path, obj)
        if answer.status not in (200, 201, 202, 409):
            raise Rejected(f"POST {path}: {answer.status} {answer.body[:300].decode(errors='replace')}")

    async def create_all(self, path: str, objects: Iterable[Any], connections: int = 12) -> None:
        """Create many objects in parallel."""
        left = iter(objects)

        async def work() -> None:
            connection = await self.connection()
            try:
                for obj in left:
                    answer = await connection.request("POST", path, obj)
                    if answer.status not in (200, 201, 202):
                        raise Rejected(f"POST {path}: {answer.status} {answer.body[:300].decode(errors='replace')}")
            finally:
                connection.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(work())


class Connection:
    def __init__(self, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._common = f"Host: localhost:{client.port}\r\nAuthorization: Bearer {client.token}\r\n"

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "application/json",
        accept: str = "application/json",
        encoding: str = "",
    ) -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._common}Accept: {accept}\r\n"
        if encoding:
            head += f"Accept-Encoding: {encoding}\r\n"
        if body:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)

    async def request(
        self,
        method: str,
        path: str,
        obj: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        encoding: str = "",
    ) -> Answer:
        body = b"" if obj is None else obj if isinstance(obj, bytes) else orjson.dumps(obj)
        self.send(method, path, body, content_type, accept, encoding)
        status, headers = await self.head()
        return Answer(status, await self._body(headers))

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        return int(lines[0].split(" ")[1]), headers

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", "0")))
        parts: list[bytes] = []
        while True:
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            part = await self.reader.readexactly(size + 2)
            if not size:
                return b"".join(parts)
            parts.append(part[:-2])

    def close(self) -> None:
        self.writer.transport.abort()
