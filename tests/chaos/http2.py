"""HTTP/2 connections that all clients of an address share, as the clients in a Go process do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from chaos.http import Address, Answer, NoAnswer, NotSent
from support.http2_shared import SharedConnection
from support.http2_streams import Stream, StreamReset
from tetrapod.generic.http2 import frames

_PING_TIMEOUT: Final = 5.0
"""Seconds after which a connection is closed that does not answer a PING. Go waits for 15 seconds by default."""


def over_http2(address: Address) -> Address:
    """Return the address with clients that share HTTP/2 connections. Its context must not be used for HTTP/1.1."""
    assert address.tls is not None
    address.tls.set_alpn_protocols(["h2"])
    return replace(address, shared=SharedConnections())


class SharedConnections:
    """The HTTP/2 connections to one address: one, and others if the server permits no more streams or is leaving.

    A request whose stream the server has refused is known to be without effect (RFC 9113, 8.7).
    """

    def __init__(self) -> None:
        self._connections: list[SharedConnection] = []
        self._opening = asyncio.Lock()
        self._checks: set[asyncio.Task[None]] = set()

    async def ask(
        self, address: Address, method: str, path: str, body: Any, content_type: str, timeout: float
    ) -> Answer:
        """Send a request and return the response. Raises NotSent and NoAnswer."""
        connection, stream = await self._request(address, method, path, body, content_type, timeout)
        try:
            async with asyncio.timeout(timeout):
                return Answer(await connection.head(stream), await connection.read(stream))
        except StreamReset as error:
            raise _failure(error) from error
        except TimeoutError as error:
            self._check(connection)
            raise NoAnswer(repr(error)) from error
        finally:
            connection.cancel(stream)

    @contextlib.asynccontextmanager
    async def stream(
        self, address: Address, method: str, path: str, body: Any, idle: float, timeout: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Send a request and yield the status and the lines of the response. Raises NotSent and NoAnswer."""
        connection, stream = await self._request(address, method, path, body, "application/json", timeout)
        try:
            async with asyncio.timeout(timeout):
                status = await connection.head(stream)
            yield status, connection.lines(stream, idle)
        except StreamReset as error:
            raise _failure(error) from error
        except TimeoutError as error:
            self._check(connection)
            raise NoAnswer(repr(error)) from error
        finally:
            connection.cancel(stream)

    def close(self) -> None:
        """Close all connections at once."""
        for connection in self._connections:
            connection.close()

    async def _request(
        self, address: Address, method: str, path: str, body: Any, content_type: str, timeout: float
    ) -> tuple[SharedConnection, Stream]:
        content = None if body is None else json.dumps(body).encode()
        headers = address.request_headers(content_type if body is not None else "")
        try:
            async with asyncio.timeout(timeout):
                connection = await self._usable(address)
        except (OSError, TimeoutError) as error:
            raise NotSent(repr(error)) from error
        return connection, connection.request(method, path, headers, content)

    async def _usable(self, address: Address) -> SharedConnection:
        """Return a connection that accepts a request, and open one if there is none."""
        async with self._opening:
            self._connections = [connection for connection in self._connections if not connection.finished]
            for connection in self._connections:
                if connection.usable:
                    return connection
            parts = urlsplit(address.url)
            assert parts.hostname is not None
            assert parts.port is not None
            assert address.tls is not None
            connection = await SharedConnection.open(parts.hostname, parts.port, address.tls)
            self._connections.append(connection)
            return connection

    def _check(self, connection: SharedConnection) -> None:
        """Close the connection if the server does not answer a PING, as Go does after a time without frames."""

        async def check() -> None:
            if not await connection.answers_a_ping(_PING_TIMEOUT):
                connection.close()

        task = asyncio.create_task(check())
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)


def _failure(error: StreamReset) -> Exception:
    return (NotSent if error.code == frames.REFUSED_STREAM else NoAnswer)(repr(error))
