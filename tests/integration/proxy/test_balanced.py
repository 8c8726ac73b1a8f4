"""Two replicas of a service of which one stops: which requests are retried at the other, and which must not be."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from integration.http.conftest import Serve
from integration.proxy.conftest import RawBackend
from support.waiting import eventually
from tetrapod.generic.filters.draining import Draining, with_draining
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy import BackendError, ClientTLS, replicas
from tetrapod.generic.proxy.balanced_pool import BalancedPool


class Replica:
    """A replica that counts its requests. With `draining` it closes connections like a service that stops."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = True
        self.draining = Draining(behind_aggregator=True)
        self.done: list[str] = []
        self.handler = with_draining(self._handle, self.draining)

    async def _handle(self, request: Request) -> Response:
        if request.path == "/readyz":
            return Response(200 if self.ready and not self.draining.active else 500, [], b"")
        self.done.append(f"{request.method} {(await request.body.read(100)).decode()}")
        return Response(200, [], self.name.encode())


@pytest.fixture
async def balanced() -> AsyncIterator[BalancedPool]:
    pool = BalancedPool()
    yield pool
    await pool.close()


def url(server: HttpServer) -> str:
    return f"http://127.0.0.1:{server.port}"


async def ask(
    pool: BalancedPool, where: str, method: str = "GET", body: bytes = b""
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return await pool.fetch(method, f"{where}/x", body)


async def test_requests_are_shared_out_and_a_write_goes_on_at_the_other_when_one_stops(
    serve: Serve, balanced: BalancedPool
) -> None:
    one, two = Replica("one"), Replica("two")
    urls = [url(await serve(one.handler)), url(await serve(two.handler))]
    balanced.balance("core", urls, ClientTLS())
    assert {(await ask(balanced, urls[0]))[2] for _ in range(4)} == {b"one", b"two"}
    one.draining.begin()
    for number in range(6):
        status, headers, body = await ask(balanced, urls[0], "POST", str(number).encode())
        assert (status, body) == (200, b"two")
        assert not any(name.startswith(b"x-tetrapod") for name, _ in headers)
    assert not [done for done in one.done if done.startswith("POST")]
    assert [done for done in two.done if done.startswith("POST")] == [f"POST {number}" for number in range(6)], (
        "each once"
    )


async def test_while_all_replicas_stop_the_response_asks_to_try_again(serve: Serve, balanced: BalancedPool) -> None:
    one, two = Replica("one"), Replica("two")
    urls = [url(await serve(one.handler)), url(await serve(two.handler))]
    balanced.balance("core", urls, ClientTLS())
    one.draining.begin()
    two.draining.begin()
    status, headers, _ = await ask(balanced, urls[0], "POST", b"{}")
    assert status == 503 and (b"retry-after", b"1") in headers
    assert not any(name.startswith(b"x-tetrapod") for name, _ in headers)


async def test_behind_one_address_a_new_connection_may_find_another(balanced: BalancedPool) -> None:
    """A Service's address: kept connections lead to a replica that stops, new ones to the others."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine = backend.connections
        for number in range(10):
            await reader.readuntil(b"\r\n\r\n")
            if mine == 1 and number:
                writer.write(
                    b"HTTP/1.1 503 X\r\nX-Tetrapod-Untouched: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                )
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % mine)

    async with RawBackend(answer) as backend:
        where = f"http://{backend.endpoint.authority}"
        balanced.balance("core", [where], ClientTLS())
        assert (await ask(balanced, where))[2] == b"1"
        assert (await ask(balanced, where, "POST"))[2] == b"2"


async def test_an_unreachable_replica_is_skipped_for_any_method(serve: Serve, balanced: BalancedPool) -> None:
    two = Replica("two")
    urls = ["http://127.0.0.1:1", url(await serve(two.handler))]
    balanced.balance("core", urls, ClientTLS())
    for method in ("POST", "DELETE", "GET", "PATCH"):
        assert (await ask(balanced, urls[0], method, b"{}"))[2] == b"two"


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("POST", False), ("DELETE", False)])
async def test_requests_that_may_have_taken_effect_are_not_repeated(
    serve: Serve, balanced: BalancedPool, method: str, again: bool
) -> None:
    """The replica stops while it handles the request."""

    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    two = Replica("two")
    async with RawBackend(die) as dying:
        urls = [f"http://{dying.endpoint.authority}", url(await serve(two.handler))]
        balanced.balance("core", urls, ClientTLS())
        if again:
            assert (await ask(balanced, urls[0], method))[2] == b"two"
        else:
            with pytest.raises(BackendError, match="EOF"):
                await ask(balanced, urls[0], method)
            assert not two.done
        assert dying.connections == 1


async def test_idle_connections_are_answered_while_their_owner_goes(serve: Serve, balanced: BalancedPool) -> None:
    """A request that reaches a server just when it closes the connection is rejected without effect, and not lost."""
    one = Replica("one")
    server = await serve(one.handler)
    where = url(server)
    await ask(balanced, where)
    one.draining.begin()
    stopping = asyncio.create_task(server.stop(1.0, linger=5.0))
    await asyncio.sleep(0)
    status, headers, _ = await ask(balanced, where, "POST", b"1")
    assert (
        status == 503
        and (b"x-tetrapod-untouched", b"1") in headers
        and not [d for d in one.done if d.startswith("POST")]
    )
    async with asyncio.timeout(4):
        await stopping  # at once, since no replica is left


class Names:
    """A name server for one name: the addresses of a headless Service."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, *addresses: str) -> None:
        self.addresses = list(addresses)
        ask = asyncio.get_running_loop().getaddrinfo

        async def answer(host: str, port: int, **more: Any) -> list[Any]:
            if host != name:
                return await ask(host, port, **more)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.addresses]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answer)


async def test_an_address_of_a_headless_name_that_is_not_ready_is_left_out(
    balanced: BalancedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name still has its address and it would answer.

    The same is done with an address that the name no longer has.
    """
    monkeypatch.setattr(replicas, "PROBE_EVERY", 0.05)
    monkeypatch.setattr(replicas, "RESOLVE_EVERY", 0.1)
    names = Names(monkeypatch, "core.tetrapod.svc", "127.0.0.1", "127.0.0.2")
    one, two, three = Replica("one"), Replica("two"), Replica("three")
    servers = [HttpServer(one.handler)]
    await servers[0].start()
    port = servers[0].port
    servers += [
        HttpServer(replica.handler, host=f"127.0.0.{number}", port=port) for number, replica in ((2, two), (3, three))
    ]
    for server in servers[1:]:
        await server.start()
    where, lifecycle = f"http://core.tetrapod.svc:{port}", Lifecycle()
    balanced.balance("core", [where], ClientTLS())
    balanced.follow(lifecycle)

    async def until_answered_by(*wanted: str) -> None:
        """Send requests until all replicas have answered, each request by one of them."""

        async def answered() -> set[str]:
            return {(await ask(balanced, where))[2].decode() for _ in range(8)}

        await eventually(answered, lambda found: found == set(wanted), timeout=30)

    try:
        await until_answered_by("one", "two")
        two.ready = False
        await until_answered_by("one")
        two.ready = True
        await until_answered_by("one", "two")
        names.addresses[0] = "127.0.0.3"
        await until_answered_by("two", "three")
    finally:
        await lifecycle.stop()
        await balanced.close()
        for server in servers:
            await server.stop(0.2)
