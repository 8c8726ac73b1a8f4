"""HTTP/2 to backends: one connection for many watches, flow control, and connections that end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from integration.http.conftest import Serve
from integration.proxy.conftest import Context, watching_client
from support.http2_backend import OK, Http2Backend, Http2Peer
from support.waiting import eventually
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.http2 import frames
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint
from tetrapod.generic.proxy import pool as pools
from tetrapod.generic.proxy.balanced_pool import BalancedPool
from tetrapod.generic.proxy.exchange import Exchange
from tetrapod.generic.proxy.h2 import connection as connections
from tetrapod.generic.proxy.h2.exchange import STREAM_WINDOW


def endpoint_of(server: HttpServer) -> Endpoint:
    return Endpoint("127.0.0.1", server.port, ClientTLS(insecure=True, server_name="localhost"))


async def becomes_true(condition: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return condition()

    await eventually(ask)


async def watch(pool: BackendPool, endpoint: Endpoint, method: str = "GET", body: bytes = b"") -> Exchange:
    return await pool.exchange(endpoint, method, "/watch", [], body, shared=True)


async def version(request: Request) -> Response:
    return Response(200, [], request.http_version.encode())


class Watches:
    """The handler of a server whose watches go on until the client leaves."""

    def __init__(self) -> None:
        self.writers: list[StreamWriter] = []

    async def __call__(self, request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            self.writers.append(writer)
            try:
                await writer.wait_closed()
            finally:
                self.writers.remove(writer)

        request.cancel_when_gone = True
        return StreamResponse(200, [], run, endless=True)


async def test_watches_share_one_connection_and_each_gets_its_events(
    serve: Serve, tls: ServingTLS, pool: BackendPool
) -> None:
    watches = Watches()
    endpoint = endpoint_of(await serve(watches, tls))
    exchanges = await asyncio.gather(*(watch(pool, endpoint) for _ in range(50)))
    assert pool.open_connections == 1
    await becomes_true(lambda: len(watches.writers) == 50)
    for number, writer in enumerate(watches.writers):
        writer.write(b"%d" % number)
    assert sorted([int(await exchange.chunk()) for exchange in exchanges]) == list(range(50))
    for exchange in exchanges[:49]:
        exchange.close()
    await becomes_true(lambda: len(watches.writers) == 1)
    watches.writers[0].write(b"on")
    assert await exchanges[49].chunk() == b"on"


async def test_names_of_headers_are_sent_in_lower_case(serve: Serve, tls: ServingTLS, pool: BackendPool) -> None:
    async def names(request: Request) -> Response:
        return Response(200, [], b" ".join(name for name, _ in request.headers))

    endpoint = endpoint_of(await serve(names, tls))
    headers = [(b"x-remote-extra-example.com%2Fid", b"1"), (b"X-Remote-User", b"alice")]
    exchange = await pool.exchange(endpoint, "GET", "/", headers, b"", shared=True)
    assert await exchange.chunk() == b"host x-remote-extra-example.com%2fid x-remote-user"


async def test_other_requests_and_upgrades_use_http_1(serve: Serve, tls: ServingTLS, pool: BackendPool) -> None:
    endpoint = endpoint_of(await serve(version, tls))
    assert await (await watch(pool, endpoint)).read() == b"2.0"
    assert await (await pool.exchange(endpoint, "GET", "/", [])).read() == b"1.1"
    assert await (await pool.exchange(endpoint, "GET", "/", [], upgrade=b"websocket")).read() == b"1.1"
    assert await (await pool.exchange(endpoint, "POST", "/", [], b"body")).read() == b"1.1"


async def test_watches_of_a_server_without_http2_use_http_1(context: Context, pool: BackendPool) -> None:
    async def serve(peer: Http2Peer) -> None:
        while await peer.reader.readuntil(b"\r\n\r\n"):
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with Http2Backend(serve, context(), ["http/1.1"]) as backend:
        for _ in range(3):
            assert await (await watch(pool, backend.endpoint)).read() == b"ok"
        assert backend.connections == 1


async def test_the_environment_can_disable_http2(
    serve: Serve, tls: ServingTLS, pool: BackendPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISABLE_HTTP2", "1")
    endpoint = endpoint_of(await serve(version, tls))
    assert endpoint.tls is not None
    unique = Endpoint("localhost", endpoint.port, ClientTLS(insecure=True, server_name="localhost.disabled"))
    assert await (await watch(pool, unique)).read() == b"1.1"


async def test_a_second_connection_is_made_when_the_server_permits_no_more_streams(
    serve: Serve, tls: ServingTLS, pool: BackendPool
) -> None:
    watches = Watches()
    endpoint = endpoint_of(await serve(watches, replace(tls, max_streams=10)))
    await watch(pool, endpoint)
    await asyncio.gather(*(watch(pool, endpoint) for _ in range(24)))
    assert pool.open_connections == 3


async def test_a_slow_reader_holds_up_its_backend_but_no_other_stream(context: Context, pool: BackendPool) -> None:
    sent = 0

    async def serve(peer: Http2Peer) -> None:
        nonlocal sent
        await peer.greet()
        slow, _ = await peer.request()
        peer.headers(slow)
        for _ in range(STREAM_WINDOW // 16384):
            peer.data(slow, b"x" * 16384)
            sent += 16384
        quick, _ = await peer.request()
        peer.answer(quick)
        while sent < 1 << 20:
            _, _, stream, payload = await peer.frame(frames.WINDOW_UPDATE)
            if stream == slow:
                size = frames.read_number(payload)
                for _ in range(size // 16384):
                    peer.data(slow, b"x" * 16384)
                    sent += 16384
        peer.data(slow, b"", end=True)
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        slow = await watch(pool, backend.endpoint)
        assert await (await watch(pool, backend.endpoint)).read() == b"done"
        assert sent <= 2 * STREAM_WINDOW
        assert len(await slow.read()) == sent >= 1 << 20


async def test_request_bodies_wait_for_the_windows_of_the_server(context: Context, pool: BackendPool) -> None:
    received = bytearray()
    body = bytes(range(256)) * 1000

    async def serve(peer: Http2Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 1000, frames.MAX_FRAME_SIZE: 16384})
        stream, fields = await peer.request()
        assert dict(fields)["content-length"] == str(len(body))
        ended = False
        while not ended:
            _, flags, _, payload = await peer.frame(frames.DATA)
            received.extend(payload)
            ended = bool(flags & frames.END_STREAM)
            peer.send(frames.window_update(stream, len(payload)) + frames.window_update(0, len(payload)))
        peer.answer(stream)
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        assert await (await watch(pool, backend.endpoint, "POST", body)).read() == b"done"
    assert bytes(received) == body


async def test_closing_an_exchange_resets_its_stream(context: Context, pool: BackendPool) -> None:
    resets: list[tuple[int, int]] = []

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        peer.headers((await peer.request())[0])
        _, _, stream, payload = await peer.frame(frames.RST_STREAM)
        resets.append((stream, frames.read_number(payload)))
        peer.data(stream, b"late")
        peer.answer((await peer.request())[0])
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        (await watch(pool, backend.endpoint)).close()
        assert await (await watch(pool, backend.endpoint)).read() == b"done"
        assert resets == [(1, frames.CANCEL)]


async def test_a_cancelled_caller_resets_the_stream(context: Context, pool: BackendPool) -> None:
    reset = asyncio.Event()

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        await peer.frame(frames.RST_STREAM)
        reset.set()

    async with Http2Backend(serve, context()) as backend:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await watch(pool, backend.endpoint)
        await asyncio.wait_for(reset.wait(), 5)


async def test_streams_beyond_a_goaway_are_sent_again_and_the_others_go_on(context: Context, pool: BackendPool) -> None:
    bodies: list[bytes] = []

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        if backend.connections == 1:
            first, _ = await peer.request()
            await peer.request()
            peer.send(frames.goaway(frames.NO_ERROR, first))
            await asyncio.sleep(0.1)
            peer.answer(first, b"first")
            return
        second, _ = await peer.request()
        bodies.append((await peer.frame(frames.DATA))[3])
        peer.answer(second, b"second")
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        one = asyncio.create_task(watch(pool, backend.endpoint))
        two = asyncio.create_task(watch(pool, backend.endpoint, "POST", b"body"))
        assert await (await one).read() == b"first"
        assert await (await two).read() == b"second"
        assert (bodies, backend.connections) == ([b"body"], 2)


async def test_a_refused_stream_is_sent_again_on_the_same_connection(context: Context, pool: BackendPool) -> None:
    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        peer.send(frames.reset((await peer.request())[0], frames.REFUSED_STREAM))
        peer.answer((await peer.request())[0])
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        assert await (await watch(pool, backend.endpoint, "POST", b"body")).read() == b"done"
        assert backend.connections == 1


async def test_a_request_that_may_have_been_executed_is_not_sent_again(context: Context, pool: BackendPool) -> None:
    requests = 0

    async def serve(peer: Http2Peer) -> None:
        nonlocal requests
        await peer.greet()
        peer.answer((await peer.request())[0])
        await peer.request()
        requests += 1

    async with Http2Backend(serve, context()) as backend:
        await (await watch(pool, backend.endpoint)).read()
        with pytest.raises(BackendError, match="unexpected EOF"):
            await watch(pool, backend.endpoint, "POST", b"body")
        assert requests == 1


async def test_a_read_is_sent_again_when_a_used_connection_turns_out_to_be_dead(
    context: Context, pool: BackendPool
) -> None:
    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        peer.answer((await peer.request())[0])
        await peer.request()

    async with Http2Backend(serve, context()) as backend:
        for _ in range(3):
            assert await (await watch(pool, backend.endpoint)).read() == b"done"
        assert backend.connections == 3


async def test_a_connection_is_closed_if_its_server_does_not_answer_a_ping(
    context: Context, pool: BackendPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_IDLE", 0.1)
    monkeypatch.setattr(connections, "PING_TIMEOUT", 0.2)
    pings = 0

    async def serve(peer: Http2Peer) -> None:
        nonlocal pings
        await peer.greet()
        peer.headers((await peer.request())[0])
        for _ in range(2):
            payload = (await peer.frame(frames.PING))[3]
            pings += 1
            if pings == 1:
                peer.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        exchange = await watch(pool, backend.endpoint)
        with pytest.raises(BackendError, match="http2: client connection lost"):
            await exchange.read()
        assert pings == 2
        await becomes_true(lambda: pool.open_connections == 0)


async def test_a_connection_is_not_used_any_more_after_many_resets(
    context: Context, pool: BackendPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_MOST_RESETS", 3)

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        while True:
            peer.headers((await peer.request())[0])

    async with Http2Backend(serve, context()) as backend:
        lasting = await watch(pool, backend.endpoint)
        for _ in range(4):
            (await watch(pool, backend.endpoint)).close()
        assert backend.connections == 2
        assert not lasting.lost


async def test_idle_connections_are_closed(
    context: Context, pool: BackendPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_TIMEOUT", 0.2)

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        peer.answer((await peer.request())[0])
        await peer.reader.read()

    async with Http2Backend(serve, context()) as backend:
        await (await watch(pool, backend.endpoint)).read()
        assert pool.open_connections == 1
        await becomes_true(lambda: pool.open_connections == 0)


async def test_requests_at_once_share_the_connection_that_is_being_made_and_its_error(
    context: Context, pool: BackendPool
) -> None:
    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        while True:
            peer.answer((await peer.request())[0])

    async with Http2Backend(serve, context()) as backend:
        endpoint = backend.endpoint
        await asyncio.gather(*(watch(pool, endpoint) for _ in range(20)))
        assert backend.connections == 1
    closed = Endpoint("127.0.0.1", 1, endpoint.tls)
    errors = await asyncio.gather(*(watch(pool, closed) for _ in range(5)), return_exceptions=True)
    assert {str(error) for error in errors} == {"dial tcp 127.0.0.1:1: connect: connection refused"}


async def test_watches_are_shared_out_over_replicas_and_go_on_at_the_other_when_one_dies(
    serve: Serve, tls: ServingTLS
) -> None:
    pool = BalancedPool()
    handlers = [Watches(), Watches()]
    servers = [await serve(handler, tls) for handler in handlers]
    urls = [f"https://127.0.0.1:{server.port}" for server in servers]
    endpoint = pool.balance("core", urls, ClientTLS(insecure=True))
    exchanges = [await watch(pool, endpoint) for _ in range(6)]
    assert [len(handler.writers) for handler in handlers] == [3, 3]
    assert pool.open_connections == 2
    await servers[0].stop(0)
    await becomes_true(lambda: sum(exchange.lost for exchange in exchanges) == 3)
    assert not (await watch(pool, endpoint)).lost
    assert len(handlers[1].writers) == 4
    await pool.close()


async def test_a_client_gets_a_watch_of_an_http2_backend_with_its_trailers(
    serve: Serve, context: Context, pool: BackendPool
) -> None:
    async def backend_serves(peer: Http2Peer) -> None:
        await peer.greet()
        stream, fields = await peer.request()
        assert dict(fields)["x-remote-user"] == "alice"
        peer.headers(stream, [*OK, ("trailer", "x-sum")])
        peer.data(stream, b"one")
        peer.data(stream, b"two")
        peer.headers(stream, [("x-sum", "7"), ("x-remote-user", "eve")], end=True)
        await peer.reader.read()

    async with Http2Backend(backend_serves, context()) as backend:
        client = await watching_client(serve, pool, backend.endpoint)
        client.get("/watch", "X-Remote-User: eve\r\nTE: trailers\r\n")
        assert (await client.reader.readuntil(b"0\r\n")).endswith(b"6\r\nonetwo\r\n0\r\n")
        assert (await client.reader.readuntil(b"\r\n\r\n")).lower() == b"x-sum: 7\r\n\r\n"
        await client.close()
