"""A server that speaks HTTP/2, a client of it, and a check of all changes of state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from integration.http.conftest import Serve, client_context, undocumented_changes
from support.http2_client import LARGE_WINDOW, Http2Client
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.h2 import states
from tetrapod.generic.http.h2.protocol import Http2Protocol
from tetrapod.generic.http.h2.stream import Stream
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS

Serve2 = Callable[..., Awaitable[HttpServer]]
Connect = Callable[..., Awaitable[Http2Client]]


def settled(server: HttpServer, tasks: int = 0) -> Callable[[], Awaitable[bool]]:
    """Return a condition for `eventually`: the server runs as many handlers."""

    async def condition() -> bool:
        return len(server.state.tasks) == tasks

    return condition


@pytest.fixture(autouse=True)
def only_documented_changes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a connection or a stream changes its state in a way that states.py does not list."""
    undocumented = [
        undocumented_changes(monkeypatch, Http2Protocol, "session_state", states.PREFACE, states.SESSION_TRANSITIONS),
        undocumented_changes(monkeypatch, Stream, "stream_state", states.OPEN, states.STREAM_TRANSITIONS),
    ]
    yield
    assert not any(undocumented)


@pytest.fixture
def serve2(serve: Serve, tls: ServingTLS) -> Serve2:
    async def start(handler: Handler, max_streams: int = 0) -> HttpServer:
        return await serve(handler, tls=replace(tls, max_streams=max_streams))

    return start


@pytest.fixture
async def connect(pki: Pki) -> AsyncIterator[Connect]:
    clients: list[Http2Client] = []

    async def open_client(server: HttpServer, window: int = LARGE_WINDOW, *, greet: bool = True) -> Http2Client:
        client = await Http2Client.connect(server.port, client_context(pki), window=window, greet=greet)
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        await client.close()
