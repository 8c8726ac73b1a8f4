"""`Http2Sessions`: the HTTP/2 connections of a pool by endpoint, and which endpoints speak only one version of HTTP.

One connection carries all requests to an endpoint. Another one is made when its server permits no more streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.h2.connection import Http2Connection
from tetrapod.machinery.boundedcache import BoundedCache
from tetrapod.machinery.failure import Failure

C = TypeVar("C")
_HTTP1: Final = "HTTP/1.1"
_HTTP2: Final = "HTTP/2"


class Http2Sessions:
    """Keeps the HTTP/2 connections of one pool, so that requests to an endpoint share them."""

    def __init__(self) -> None:
        self._open: dict[Endpoint, list[Http2Connection]] = {}
        self._dialing: dict[Endpoint, asyncio.Future[Failure[BackendError] | None]] = {}
        # The version of HTTP of endpoints that speak only one, by host and port.
        self._only: BoundedCache[tuple[str, int], str] = BoundedCache(count=1024, size=256 << 10)

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def is_only_http1(self, endpoint: Endpoint) -> bool:
        """Return whether the last connection to the endpoint used HTTP/1.1, although HTTP/2 was offered."""
        return self._only.recall((endpoint.host, endpoint.port)) == _HTTP1

    def is_only_http2(self, endpoint: Endpoint) -> bool:
        """Return whether the endpoint has refused HTTP/1.1 (`refuses_http1`), and no connection has used it since."""
        return self._only.recall((endpoint.host, endpoint.port)) == _HTTP2

    def refuses_http1(self, endpoint: Endpoint) -> None:
        """Remember that the server of the endpoint speaks no HTTP/1.1."""
        self._only.keep((endpoint.host, endpoint.port), _HTTP2)

    def take(self, endpoint: Endpoint) -> Http2Connection | None:
        """Return a connection to the endpoint that has room for another exchange, or None.

        The room is not reserved: until the caller begins the exchange, other callers may get the same connection.
        """
        for connection in self._open.get(endpoint, ()):
            if connection.has_room:
                return connection
        return None

    async def obtain(
        self, endpoint: Endpoint, dial: Callable[[], Awaitable[C | Http2Connection]], *, new: bool = False
    ) -> C | Http2Connection:
        """Return an existing connection with room for another exchange, or a new one.

        While one request connects to an endpoint that may speak HTTP/2, other requests to this endpoint wait. They then
        share its HTTP/2 connection, or fail with the same error.

        Args:
            endpoint: the endpoint.
            dial: makes a connection.
            new: whether to make a new connection in any case.

        Raises:
            BackendError: the connection failed.
        """
        while not new:
            if (connection := self.take(endpoint)) is not None:
                return connection
            if (dialing := self._dialing.get(endpoint)) is None:
                break
            await asyncio.wait((dialing,))
            if (failure := dialing.result()) is not None:
                raise failure.error()
        if endpoint in self._dialing or self.is_only_http1(endpoint):
            return self._opened(endpoint, await dial())
        outcome = self._dialing[endpoint] = asyncio.get_running_loop().create_future()
        try:
            return self._opened(endpoint, await dial())
        except BackendError as error:
            outcome.set_result(Failure(error))
            raise
        finally:
            if not outcome.done():
                outcome.set_result(None)
            del self._dialing[endpoint]

    def _opened(self, endpoint: Endpoint, connection: C | Http2Connection) -> C | Http2Connection:
        if isinstance(connection, Http2Connection):
            if not connection.closing:
                self._open.setdefault(endpoint, []).append(connection)
            if self.is_only_http1(endpoint):
                self._only.pop((endpoint.host, endpoint.port), None)
        else:
            self._only.keep((endpoint.host, endpoint.port), _HTTP1)
        return connection

    def lost(self, endpoint: Endpoint, connection: Http2Connection) -> None:
        """Forget a connection that is lost."""
        connections = self._open.get(endpoint)
        if connections is not None and connection in connections:
            connections.remove(connection)
            if not connections:
                del self._open[endpoint]

    def drain(self, chosen: Callable[[Endpoint], bool]) -> None:
        """Begin no more exchanges on the connections to the chosen endpoints."""
        for endpoint, connections in list(self._open.items()):
            if chosen(endpoint):
                for connection in list(connections):
                    connection.drain()

    def close_idle(self, oldest: float) -> None:
        """Close the connections that have had no exchanges since `oldest`, a time of the event loop."""
        for connections in list(self._open.values()):
            for connection in list(connections):
                if not connection.streams and connection.idle_since < oldest:
                    connection.drain()

    def close(self) -> None:
        """Abort all connections."""
        for connections in list(self._open.values()):
            for connection in list(connections):
                connection.close()
