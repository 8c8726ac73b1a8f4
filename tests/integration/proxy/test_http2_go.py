"""HTTP/2 to a server in Go, as aggregated API servers are."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.goprogram import build_go_program
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import BodyReader
from tetrapod.generic.proxy import BackendPool, ClientTLS, Endpoint

Start = Callable[[], Endpoint]


@pytest.fixture(scope="session")
def program() -> Path:
    return build_go_program(Path(__file__).parent / "http2server", "http2server")


@pytest.fixture
def start(program: Path, pki: Pki) -> Iterator[Start]:
    processes: list[subprocess.Popen[bytes]] = []

    def run() -> Endpoint:
        process = subprocess.Popen([program, *map(str, pki.serving)], stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        return Endpoint("127.0.0.1", port, ClientTLS(ca_data=pki.ca.read_text(), server_name="localhost"))

    yield run
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


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
