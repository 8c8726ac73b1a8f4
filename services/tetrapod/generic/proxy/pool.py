"""A pool of keep-alive connections by endpoint, and HTTP requests over them.

The proxy, webhooks and calls to the auth service use it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final

from tetrapod.generic.http.request import BodyReader, HeaderList
from tetrapod.generic.observability.tracing.propagation import outgoing
from tetrapod.generic.proxy.connection import BackendConnection, BackendError
from tetrapod.generic.proxy.dialing import dial
from tetrapod.generic.proxy.endpoint import Endpoint, parse_url
from tetrapod.generic.proxy.headers import render_request
from tetrapod.generic.proxy.tls import ClientTLS

IDLE_TIMEOUT: Final = 60.0
"""Seconds. Shorter than the 90 s of upstream's servers, so that this client closes idle connections before them."""
MAX_IDLE: Final = 256
REPLAYABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class BackendPool:
    """A pool of keep-alive connections. All failures of connections and requests are raised as BackendError."""

    def __init__(self) -> None:
        self._idle: dict[Endpoint, deque[BackendConnection]] = {}
        self._all: set[BackendConnection] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    # --- exchanges

    @outgoing
    async def exchange(  # noqa: PLR0913 - a parameter object would be allocated for each proxied request
        self,
        endpoint: Endpoint,
        method: str,
        target: str,
        headers: HeaderList,
        body: BodyReader | bytes = b"",
        *,
        host: str = "",
        upgrade: bytes = b"",
        length: int | None = None,
        replay: bool = False,
        new_connection: bool = False,
    ) -> BackendConnection:
        """Send a request and return its connection when status and headers of the response have arrived.

        The caller must read the body to its end or close the connection. If a pooled connection turns out to be dead, a
        request that may be repeated is sent again over a new one.

        Args:
            endpoint: the server.
            method: the method.
            target: path and query.
            headers: the headers, without Host and framing.
            body: the bytes, or a reader whose data is sent as it arrives.
            host: the Host header; "" for that of the endpoint.
            upgrade: the protocol of a requested upgrade; b"" for none.
            length: the size of a streamed body; None to send it in chunks.
            replay: whether the request may be repeated, regardless of its method.
            new_connection: whether to use a new connection.

        Raises:
            BackendError: the connection or the request failed.
        """
        streamed = not isinstance(body, bytes)
        framing = _framing(method, body, length, upgrade)
        head = render_request(method, target, host or endpoint.authority, headers, framing)
        new_connection = new_connection or bool(upgrade)
        while True:
            connection = None if new_connection else self._take_idle(endpoint)
            if connection is None:
                try:
                    connection = await self._connect(endpoint)
                except BackendError as error:
                    error.unsent = True
                    raise
            try:
                if isinstance(body, bytes):
                    connection.begin(method, head, body)
                else:
                    connection.begin(method, head, all_sent=False)
                    connection.sender = asyncio.create_task(_send_body(connection, body, length))
                await connection.wait_for_head()
                return connection
            except BackendError as error:
                connection.close()
                if not (connection.used and error.no_response and (replay or method in REPLAYABLE) and not streamed):
                    raise
                new_connection = True
            except BaseException:
                connection.close()
                raise

    async def fetch(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        headers: Mapping[str, str] | HeaderList | None = None,
        timeout: float = 30.0,
        *,
        tls: ClientTLS | None = None,
        host: str = "",
        limit: int = 64 << 20,
    ) -> tuple[int, HeaderList, bytes]:
        """Send a request and return status, headers and the whole body.

        A response with an error status is returned like any other. Redirects are not followed.

        Args:
            method: the method.
            url: an http or https URL.
            body: the body.
            headers: further headers.
            timeout: seconds for the request and the response together.
            tls: the TLS configuration for https; None for the CAs of the system.
            host: the Host header; "" for that of the URL.
            limit: the maximum size of the body in bytes.

        Raises:
            BackendError: the request failed, or the body is larger than `limit`.
            TimeoutError: it took longer than `timeout` seconds.
        """
        endpoint, target, url_host = parse_url(url, tls)
        async with asyncio.timeout(timeout):
            connection = await self.exchange(
                endpoint, method, target, header_list(headers), body, host=host or url_host
            )
            try:
                return connection.status, connection.headers, await connection.read(limit)
            except BaseException:
                connection.close()
                raise

    async def stream(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | HeaderList | None = None,
        *,
        tls: ClientTLS | None = None,
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Send a request and yield the pieces of its response as they arrive, each with the status.

        The first piece is empty and comes with the head. Ending the iteration early closes the connection. There is no
        timeout.

        Raises:
            BackendError: the connection or the request failed.
        """
        endpoint, target, url_host = parse_url(url, tls)
        connection = await self.exchange(endpoint, method, target, header_list(headers), host=url_host)
        try:
            yield connection.status, b""
            while piece := await connection.chunk():
                yield connection.status, piece
        finally:
            if not connection.complete:
                connection.close()

    # --- connections

    def _take_idle(self, endpoint: Endpoint) -> BackendConnection | None:
        """Remove an idle connection to the endpoint from the pool and return it, or None if none is usable."""
        idle = self._idle.get(endpoint)
        while idle:
            connection = idle.pop()
            if not connection.lost and not connection.transport.is_closing():
                return connection
        return None

    async def _connect(self, endpoint: Endpoint) -> BackendConnection:
        def idle(connection: BackendConnection) -> None:
            self._add_idle(endpoint, connection)

        connection = await dial(endpoint, lambda: BackendConnection(idle, self._all.discard))
        self._all.add(connection)
        return connection

    def _add_idle(self, endpoint: Endpoint, connection: BackendConnection) -> None:
        idle = self._idle.get(endpoint)
        if idle is None:
            idle = self._idle[endpoint] = deque()
        if len(idle) >= MAX_IDLE:
            connection.transport.close()
            return
        idle.append(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - IDLE_TIMEOUT
        for endpoint, idle in list(self._idle.items()):
            while idle and (idle[0].idle_since < oldest or idle[0].lost):
                connection = idle.popleft()
                if not connection.lost:
                    connection.transport.close()
            if not idle:
                del self._idle[endpoint]
        if self._idle:
            self._sweeper = loop.call_later(IDLE_TIMEOUT / 4, self._sweep)

    @property
    def open_connections(self) -> int:
        """The number of open connections, whether they are idle or in use."""
        return len(self._all)

    async def close(self) -> None:
        """Abort all connections, also those in use."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        await asyncio.sleep(0)


def _framing(method: str, body: BodyReader | bytes, length: int | None, upgrade: bytes) -> bytes:
    lines = b"Connection: Upgrade\r\nUpgrade: %b\r\n" % upgrade if upgrade else b""
    if not isinstance(body, bytes):
        return lines + (b"Transfer-Encoding: chunked\r\n" if length is None else b"Content-Length: %d\r\n" % length)
    if body or method in ("POST", "PUT", "PATCH"):
        return lines + b"Content-Length: %d\r\n" % len(body)
    return lines


async def _send_body(connection: BackendConnection, body: BodyReader, length: int | None) -> None:
    try:
        while length != 0 and (data := await body.chunk()):
            await connection.send(b"%x\r\n%b\r\n" % (len(data), data) if length is None else data)
            if connection.lost:
                return
            if length is not None:
                length -= len(data)
        if length is None:
            await connection.send(b"0\r\n\r\n")
        connection.sender = None
        connection.sent()
    # the client disconnected or its body is malformed: the backend must not take a part of the body for the whole
    except Exception as error:
        connection.sender = None
        connection.fail_request_body(error)


def header_list(headers: Mapping[str, str] | HeaderList | None) -> HeaderList:
    """Return headers as a list with lower-case names; [] for None. A list is returned as it is."""
    if headers is None:
        return []
    if isinstance(headers, list):
        return headers
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
