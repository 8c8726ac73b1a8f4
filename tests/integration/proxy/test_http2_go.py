"""HTTP/2 to a server in Go, as aggregated API servers are, and to servers that speak nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack

import pytest

from support.http2_go_server import ONLY_HTTP2, go_server
from support.server import free_port
from support.waiting import eventually
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import BodyReader
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint

Start = Callable[..., Endpoint]


@pytest.fixture
def start(pki: Pki) -> Iterator[Start]:
    with ExitStack() as running:

        def run(*arguments: str) -> Endpoint:
            port = running.enter_context(go_server(pki, *arguments))
            return Endpoint("127.0.0.1", port, ClientTLS(ca_data=pki.ca.read_text(), server_name="localhost"))

        yield run


@pytest.fixture
async def tolerant() -> AsyncIterator[BackendPool]:
    """A pool that supports servers without HTTP/1.1."""
    pool = BackendPool(http2_only=True)
    yield pool
    await pool.close()


class Pieces:
    """A body that arrives in pieces."""

    def __init__(self, count: int) -> None:
        self._left = count

    async def chunk(self) -> bytes:
        await asyncio.sleep(0)
        self._left -= 1
        return b"x" * 50_000 if self._left >= 0 else b""


async def test_watches_use_http_2_and_other_requests_http_1(start: Start, pool: BackendPool) -> None:
    endpoint = start()
    for shared, version in [(True, b"HTTP/2.0"), (False, b"HTTP/1.1")]:
        headers = [(b"x-remote-user", b"alice")]
        exchange = await pool.exchange(endpoint, "POST", "/a?b=c", headers, b"body", shared=shared)
        assert await exchange.read() == b"body"
        received = dict(exchange.headers)
        assert (received[b"x-version"], received[b"x-user"]) == (version, b"alice")
        assert received[b"x-host"] == endpoint.authority.encode()
        assert exchange.trailers == [(b"x-sum", b"4")]


async def test_events_arrive_and_a_closed_watch_leaves_the_connection(start: Start, pool: BackendPool) -> None:
    endpoint = start()
    watches = [await pool.exchange(endpoint, "GET", "/watch", [], shared=True) for _ in range(20)]
    for watch in watches:
        events = b""
        while events.count(b"\n") < 3:
            events += await watch.chunk()
        watch.close()
    ended = await pool.exchange(endpoint, "GET", "/watch?end=1", [], shared=True)
    assert await ended.read() == b"event 0\nevent 1\nevent 2\n"
    assert pool.open_connections == 1


async def test_large_bodies_in_both_directions(start: Start, pool: BackendPool) -> None:
    endpoint = start()
    large = await pool.exchange(endpoint, "GET", "/large", [], shared=True)
    assert len(await large.read()) == 8 << 20
    for length in (5_000_000, None):
        body: BodyReader = Pieces(100)  # type: ignore[assignment]
        echoed = await pool.exchange(endpoint, "POST", "/", [], body, length=length, shared=True)
        assert len(await echoed.read()) == 5_000_000
        assert echoed.trailers == [(b"x-sum", b"5000000")]


async def test_a_server_without_http_1_gets_all_requests_over_http_2(start: Start, tolerant: BackendPool) -> None:
    endpoint = start(ONLY_HTTP2)
    for shared in (False, False, True):
        exchange = await tolerant.exchange(endpoint, "POST", "/", [], b"body", shared=shared)
        assert await exchange.read() == b"body"
        assert dict(exchange.headers)[b"x-version"] == b"HTTP/2.0"
    body: BodyReader = Pieces(100)  # type: ignore[assignment]
    echoed = await tolerant.exchange(endpoint, "PUT", "/", [], body)
    assert len(await echoed.read()) == 5_000_000
    large = await tolerant.exchange(endpoint, "GET", "/large", [])
    assert len(await large.read()) == 8 << 20
    assert tolerant.open_connections == 1


async def test_concurrent_first_requests_to_a_server_without_http_1_share_its_connection(
    start: Start, tolerant: BackendPool
) -> None:
    endpoint = start(ONLY_HTTP2)
    exchanges = await asyncio.gather(*(tolerant.exchange(endpoint, "GET", "/", []) for _ in range(20)))
    assert {dict(exchange.headers)[b"x-version"] for exchange in exchanges} == {b"HTTP/2.0"}
    assert tolerant.open_connections == 1


async def test_an_upgrade_fails_at_a_server_without_http_1(start: Start, tolerant: BackendPool) -> None:
    endpoint = start(ONLY_HTTP2)
    with pytest.raises(BackendError, match=r"EOF|reset by peer|[Bb]roken pipe"):
        await tolerant.exchange(endpoint, "GET", "/", [], upgrade=b"websocket")


async def test_a_server_that_refuses_http_1_by_an_alert_is_spoken_to_in_http_2(
    pki: Pki, pool: BackendPool, tolerant: BackendPool
) -> None:
    certificate, key = pki.serving
    port = free_port()
    endpoint = Endpoint("127.0.0.1", port, ClientTLS(ca_data=pki.ca.read_text(), server_name="localhost"))

    async def refused() -> bool:
        try:
            await pool.exchange(endpoint, "GET", "/", [])
        except BackendError as error:
            return str(error) == "remote error: tls: no application protocol"
        return False

    server = await asyncio.create_subprocess_exec(
        *("openssl", "s_server", "-quiet", "-accept", str(port), "-cert", certificate, "-key", key, "-alpn", "h2"),
        stdin=asyncio.subprocess.PIPE,  # at its end the server stops
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(refused)
        request = asyncio.create_task(tolerant.exchange(endpoint, "GET", "/", []))
        assert server.stdout is not None
        assert await server.stdout.readline() == b"PRI * HTTP/2.0\r\n"
        request.cancel()
    finally:
        server.kill()
        await server.wait()
