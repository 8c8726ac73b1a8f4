"""Fixtures of the HTTP server, and a proxy that forwards everything to one backend."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self

import pytest

from integration.http.conftest import Client, Serve, pki, pytest_asyncio_loop_factories, serve, tls
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint, forward
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

__all__ = ["pki", "pytest_asyncio_loop_factories", "serve", "tls"]

Front = Callable[[Endpoint], Awaitable[Client]]
Context = Callable[[], ssl.SSLContext]


def forwarding(pool: BackendPool, endpoint: Endpoint, *, redirects: bool = True) -> Handler:
    """Handle a request as the aggregator does: its user is alice, and an error is a 503."""

    async def handler(request: Request) -> Response:
        request.user = UserInfo("alice", groups=("g",))
        try:
            return await forward(pool, endpoint, request, redirects=redirects)
        except BackendError as error:
            return Response(503, [], str(error).encode())

    return handler


async def watching_client(serve: Serve, pool: BackendPool, endpoint: Endpoint) -> Client:
    """Return a client of a server that forwards each request as a watch."""
    handler = forwarding(pool, endpoint)

    async def watching(request: Request) -> Response:
        request.info = RequestInfo(is_resource_request=True, path=request.path, verb="watch")
        return await handler(request)

    return await Client.connect(await serve(watching))


@pytest.fixture
def context(pki: Pki) -> Context:
    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*map(str, pki.serving))
        return context

    return make


@pytest.fixture
async def pool() -> AsyncIterator[BackendPool]:
    pool = BackendPool()
    yield pool
    await pool.close()


@pytest.fixture
async def front(serve: Serve, pool: BackendPool) -> AsyncIterator[Front]:
    clients: list[Client] = []

    async def make(endpoint: Endpoint) -> Client:
        client = await Client.connect(await serve(forwarding(pool, endpoint)))
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()


class RawBackend:
    """A backend that passes each connection to a coroutine, with TLS if it has a context."""

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._serve = serve
        self._context = context
        self.connections = 0
        self.closed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        return self

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()

    @property
    def endpoint(self) -> Endpoint:
        tls = ClientTLS(insecure=True) if self._context is not None else None
        return Endpoint("127.0.0.1", self._server.sockets[0].getsockname()[1], tls)

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


def endpoint_of(server: HttpServer) -> Endpoint:
    return Endpoint("127.0.0.1", server.port)
