"""Large request bodies of many requests at once: the memory of a user is bounded, and other users are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
import pytest

from integration.http.conftest import Client, Serve
from support.waiting import eventually
from tetrapod.generic.http import request_bodies
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.request_bodies import USER_LIMIT
from tetrapod.generic.http.server import HttpServer
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

_SIZE = 3 << 20
_SHARE = USER_LIMIT // _SIZE
"""Bodies for which a user has memory."""


class Handling:
    """A handler that reads the body of a request whose path is its user, and responds once `ended` is set."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.read: list[str] = []

    async def __call__(self, request: Request) -> Response:
        name = request.path[1:]
        request.user = UserInfo(name, groups=(SYSTEM_MASTERS,) if name == "admin" else ())
        body = await request.body.read(_SIZE)
        self.read.append(name)
        await self.ended.wait()
        return Response(200, [], b"%d" % len(body))


@asynccontextmanager
async def _sent(
    server: HttpServer, user: str, count: int, head: str = "", body: bytes = b""
) -> AsyncIterator[list[Client]]:
    """Send requests of one user, each on a connection of its own; of 3 MiB if `body` is empty."""
    body = body or b"x" * _SIZE
    head = head or f"Content-Length: {len(body)}"
    clients = [await Client.connect(server) for _ in range(count)]
    for client in clients:
        client.send(f"POST /{user} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + body)
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


async def _until(condition: Callable[[], bool]) -> None:
    async def met() -> bool:
        return condition()

    await eventually(met)


def _chunked() -> bytes:
    piece = b"x" * 65_536
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for _ in range(_SIZE // len(piece))) + b"0\r\n\r\n"


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_users_bodies_beyond_the_limit_are_not_read_and_others_are(serve: Serve, *, chunked: bool) -> None:
    handling = Handling()
    server = await serve(handling)
    head, body = ("Transfer-Encoding: chunked", _chunked()) if chunked else ("", b"")
    async with (
        _sent(server, "a", _SHARE + 3, head, body) as flood,
        _sent(server, "b", 1, head, body) as other,
        _sent(server, "a", 1, body=b"small") as small,
    ):
        await _until(lambda: "b" in handling.read and len(handling.read) >= _SHARE + 2)
        assert handling.read.count("a") == _SHARE + 1  # small bodies are not limited
        assert server.state.bodies.total <= USER_LIMIT + _SIZE
        handling.ended.set()
        for client in (*flood, *other):
            assert (await client.answer())[::2] == (200, b"%d" % _SIZE)
        assert (await small[0].answer())[::2] == (200, b"5")
    assert server.state.bodies.total == 0


async def test_a_request_that_waits_too_long_is_rejected_with_retry_after(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "LONGEST_WAIT", 0.3)
    handling = Handling()
    server = await serve(handling)
    async with _sent(server, "a", _SHARE) as flood:
        await _until(lambda: len(handling.read) == _SHARE)
        async with _sent(server, "a", 1) as late, _sent(server, "admin", 1) as admin:
            status, headers, body = await late[0].answer()
            assert (status, headers["retry-after"]) == (429, "1")
            assert orjson.loads(body)["reason"] == "TooManyRequests"
            handling.ended.set()
            for client in (*flood, *admin):
                assert (await client.answer())[0] == 200
    assert server.state.bodies.total == 0


async def test_a_client_that_leaves_frees_the_memory_of_its_body(serve: Serve) -> None:
    handling = Handling()
    handling.ended.set()
    server = await serve(handling)
    async with _sent(server, "a", 1, f"Content-Length: {_SIZE}", b"the beginning"):
        await _until(lambda: server.state.bodies.total == _SIZE)
    await _until(lambda: server.state.bodies.total == 0)
    assert handling.read == []
