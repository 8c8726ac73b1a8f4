"""A pool of connections by endpoint, and HTTP requests over them.

The proxy, webhooks and calls to the auth service use it. HTTP/1.1 uses keep-alive connections, each for one request at
a time. Watches share HTTP/2 connections if the backend offers HTTP/2: an event costs a third of the CPU time or less,
and a watch a tenth of the memory and no TLS handshake. Other requests cost more over HTTP/2 (figures: CONTRIBUTING.md,
"Built here although a library exists"). They use it only if the server speaks no HTTP/1.1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Final, TypedDict

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.http.request import BodyReader, HeaderList
from tetrapod.generic.observability.tracing.propagation import outgoing
from tetrapod.generic.proxy.connection import BackendConnection
from tetrapod.generic.proxy.dialing import Connection, NoCommonVersion, dial, ignored_offer
from tetrapod.generic.proxy.endpoint import Endpoint, parse_url
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.h2.connection import Http2Connection
from tetrapod.generic.proxy.h2.sessions import Http2Sessions
from tetrapod.generic.proxy.renewed_certificates import RenewedCertificates
from tetrapod.generic.proxy.request_sending import begin, send_body
from tetrapod.generic.proxy.tls import ClientTLS

IDLE_TIMEOUT: Final = 60.0
"""The seconds after which an idle connection is closed. It is shorter than the 90 s of upstream's servers, so that this
client closes idle connections before them.
"""
MAX_IDLE: Final = 256
REPLAYABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods whose requests may be repeated."""
_TRIES: Final = 7
"""The maximum number of times that a request is sent if an HTTP/2 server does not process it (golang.org/x/net/http2:
RoundTripOpt).
"""


class ExchangeOptions(TypedDict, total=False):
    """The optional arguments of `BackendPool.exchange`.

    Attributes:
        host: the Host header; "" for that of the endpoint.
        upgrade: the protocol of a requested upgrade; b"" for none.
        length: the size of a streamed body in bytes; None to send it in chunks.
        replay: whether the request may be repeated, regardless of its method.
        new_connection: whether to use a new connection.
        shared: whether to prefer an HTTP/2 connection, which other requests share.
    """

    host: str
    upgrade: bytes
    length: int | None
    replay: bool
    new_connection: bool
    shared: bool


class BackendPool:
    """A pool of connections. All failures of connections and requests are raised as BackendError.

    Args:
        max_bytes_per_second: the limit in each direction of a connection that a client and a backend have upgraded; 0
            for none.
        dialer: connects by way of a proxy; None to connect directly. Unix sockets are always connected directly.
        http2_only: whether servers that speak HTTP/2 and no HTTP/1.1 are supported. Upgrades to them fail.
    """

    def __init__(
        self, *, max_bytes_per_second: int = 0, dialer: Dialer | None = None, http2_only: bool = False
    ) -> None:
        self.max_bytes_per_second = max_bytes_per_second
        self._supports_http2_only = http2_only
        self._dialer = dialer
        self._idle: dict[Endpoint, deque[BackendConnection]] = {}
        self._all: set[BackendConnection] = set()
        self._http2 = Http2Sessions()
        self._certificates = RenewedCertificates()
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
        shared: bool = False,
    ) -> Exchange:
        """Send a request and return its exchange when status and headers of the response have arrived.

        The caller must read the body to its end or close the exchange. If a pooled connection turns out to be dead, a
        request that may be repeated is sent again over a new one. So is each request that an HTTP/2 server declares not
        to have processed.

        Args:
            endpoint: the server.
            method: the method.
            target: path and query.
            headers: the headers, without Host and framing.
            body: the bytes, or a reader whose data is sent as it arrives.
            host, upgrade, length, replay, new_connection, shared: see `ExchangeOptions`.

        Raises:
            BackendError: the connection or the request failed.
        """
        reader = None if isinstance(body, bytes) else body
        new_connection = new_connection or bool(upgrade)
        tries = 0
        while True:
            tries += 1
            connection = None if new_connection else self._take(endpoint, shared=shared)
            if connection is None:
                try:
                    connection = await self._connect(endpoint, new=new_connection, shared=shared, upgrade=bool(upgrade))
                except BackendError as error:
                    error.unsent = True
                    raise
            exchange = begin(connection, method, target, headers, body, host or endpoint.authority, upgrade, length)
            try:
                if reader is not None:
                    exchange.sender = asyncio.create_task(send_body(exchange, reader, length))
                await exchange.wait_for_head()
                return exchange
            except BackendError as error:
                exchange.close()
                repeatable = error.no_response and (replay or method in REPLAYABLE) and reader is None
                if not (error.unsent and tries < _TRIES) and not (exchange.used and repeatable and not new_connection):
                    raise
                new_connection = new_connection or not error.unsent
            except BaseException:
                exchange.close()
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
        """Send a request without a body, such as a watch, and yield (status, piece) for each piece of the response.

        Pieces are yielded as they arrive. The first one is empty and is yielded when the head of the response has
        arrived. Ending the iteration early closes the connection. No timeout applies.

        Args:
            method: the method.
            url: an http or https URL.
            headers: further headers.
            tls: the TLS configuration for https; None for the CAs of the system.

        Raises:
            BackendError: the connection or the request failed.
        """
        endpoint, target, url_host = parse_url(url, tls)
        connection = await self.exchange(endpoint, method, target, header_list(headers), host=url_host, shared=True)
        try:
            yield connection.status, b""
            while piece := await connection.chunk():
                yield connection.status, piece
        finally:
            if not connection.complete:
                connection.close()

    # --- connections

    def _take(self, endpoint: Endpoint, *, shared: bool) -> Connection | None:
        """Return an existing connection to the endpoint for another request, or None if a new one must be made.

        An HTTP/1.1 connection is no longer idle then. Those that are closed are removed from the idle ones.

        Args:
            endpoint: the endpoint.
            shared: whether an HTTP/2 connection is preferred, which several requests share.
        """
        certificate = endpoint.certificate
        if certificate and self._certificates.renewed(certificate):
            self._give_up(lambda other: other.certificate == certificate)
        if shared and endpoint.permits_http2:
            offered = endpoint.offering_http2()
            connection = self._http2.take(offered)
            if connection is not None or not self._http2.is_only_http1(offered):
                return connection
        idle = self._idle.get(endpoint)
        while idle:
            candidate = idle.pop()
            if not candidate.lost and not candidate.transport.is_closing():
                return candidate
        return None

    def _give_up(self, chosen: Callable[[Endpoint], bool]) -> None:
        """Close the idle connections to the chosen endpoints, and begin no more exchanges on their HTTP/2 connections.

        Exchanges in flight continue.
        """
        for endpoint, idle in self._idle.items():
            if chosen(endpoint):
                for connection in idle:
                    if not connection.lost:
                        connection.transport.close()
                idle.clear()
        self._http2.drain(chosen)

    async def _connect(self, endpoint: Endpoint, *, new: bool, shared: bool, upgrade: bool) -> Connection:
        """Return a connection to an endpoint for a request.

        Args:
            endpoint: the endpoint.
            new: whether to make a new connection in any case. Otherwise an existing HTTP/2 connection may be returned.
            shared: whether to offer HTTP/2 to the server.
            upgrade: whether the request asks for an upgrade, for which only HTTP/1.1 is offered.

        Raises:
            BackendError: connecting failed.
        """
        if upgrade or not endpoint.permits_http2:
            return await self._dial(endpoint, endpoint)
        offered = endpoint.offering_http2()
        dial_offered = partial(self._dial, endpoint, offered)
        if shared or self._http2.is_only_http2(offered):
            return await self._http2.obtain(offered, dial_offered, new=new)
        try:
            connection = await self._dial(endpoint, endpoint)
        except NoCommonVersion:
            if not self._supports_http2_only:
                raise
        else:
            # A server that ignores the offer of HTTP/1.1 does not know ALPN, or speaks HTTP/2 only, as one in Go.
            if not (self._supports_http2_only and ignored_offer(connection)) or self._http2.is_only_http1(offered):
                return connection
            connection.close()
        other = await self._http2.obtain(offered, dial_offered, new=new)
        if isinstance(other, Http2Connection):
            self._http2.refuses_http1(offered)
        return other

    async def _dial(self, key: Endpoint, endpoint: Endpoint) -> Connection:
        """Connect to an endpoint.

        Args:
            key: the endpoint under which an idle HTTP/1.1 connection is pooled: the one that callers use, which offers
                no HTTP/2.
            endpoint: the same endpoint with the versions of HTTP to offer.

        Raises:
            BackendError: connecting failed.
        """
        on_idle = partial(self._add_idle, key, self._certificates.count)
        connection = await dial(
            endpoint,
            lambda: BackendConnection(on_idle, self._all.discard),
            lambda: Http2Connection(lambda lost: self._http2.lost(endpoint, lost)),
            self._dialer,
        )
        if isinstance(connection, BackendConnection):
            self._all.add(connection)
        elif self._sweeper is None:
            self._schedule_sweep()
        return connection

    def _add_idle(self, endpoint: Endpoint, renewed: int, connection: BackendConnection) -> None:
        """Keep a connection for later requests, unless its client certificate may have been renewed.

        `renewed` is the count of renewed certificates when the connection was made.
        """
        idle = self._idle.get(endpoint)
        if idle is None:
            idle = self._idle[endpoint] = deque()
        if len(idle) >= MAX_IDLE or renewed != self._certificates.count:
            connection.transport.close()
            return
        idle.append(connection)
        if self._sweeper is None:
            self._schedule_sweep()

    def _schedule_sweep(self) -> None:
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
        self._http2.close_idle(oldest)
        if self._idle or self._http2:
            self._sweeper = loop.call_later(IDLE_TIMEOUT / 4, self._sweep)

    @property
    def open_connections(self) -> int:
        """The number of open connections, whether they are idle or in use."""
        return len(self._all) + len(self._http2)

    async def close(self) -> None:
        """Abort all connections, also those in use."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._idle.clear()
        for connection in list(self._all):
            connection.close()
        self._http2.close()
        await asyncio.sleep(0)


def header_list(headers: Mapping[str, str] | HeaderList | None) -> HeaderList:
    """Return headers as a list with lower-case names; [] for None. A list is returned as it is."""
    if headers is None:
        return []
    if isinstance(headers, list):
        return headers
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
