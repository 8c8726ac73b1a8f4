"""A server that speaks HTTP/2, a client of it, and a check of all changes of state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from integration.http.conftest import client_context
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
    undocumented: set[tuple[Any, Any]] = set()

    def check(former: Any, new: Any, first: Any, transitions: Any) -> None:
        if (former is None and new is not first) or (former is not None and new not in transitions[former]):
            undocumented.add((former, new))

    def change_session(connection: Http2Protocol, new: Any) -> None:
        check(vars(connection).get("recorded"), new, states.PREFACE, states.SESSION_TRANSITIONS)
        vars(connection)["recorded"] = new

    slot: Any = vars(Stream)["stream_state"]

    def change_stream(stream: Stream, new: Any) -> None:
        check(getattr(stream, "stream_state", None), new, states.OPEN, states.STREAM_TRANSITIONS)
        slot.__set__(stream, new)

    session = property(lambda connection: vars(connection)["recorded"], change_session)
    monkeypatch.setattr(Http2Protocol, "session_state", session, raising=False)
    monkeypatch.setattr(Stream, "stream_state", property(slot.__get__, change_stream))
    yield
    assert not undocumented


@pytest.fixture
async def serve2(tls: ServingTLS) -> AsyncIterator[Serve2]:
    servers: list[HttpServer] = []

    async def start(handler: Handler, max_streams: int = 0) -> HttpServer:
        server = HttpServer(handler, tls=replace(tls, max_streams=max_streams))
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop(0.2)


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
