"""Responses: plain, streamed, rejected, failed; upgrades; the shutdown of a server."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from integration.http.conftest import Client, Serve, client_context
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import (
    ClientGone,
    Hijacked,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.machinery.status import too_many_requests


async def test_a_rejection_is_a_status_object(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        raise too_many_requests("slow down", 7)

    client = await Client.connect(await serve(handler))
    client.get()
    status, headers, body = await client.answer()
    assert (status, headers["retry-after"], headers["cache-control"]) == (429, "7", "no-cache, private")
    assert orjson.loads(body)["reason"] == "TooManyRequests"
    await client.close()


async def test_a_failing_handler_is_a_500_without_its_traceback(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        raise RuntimeError("secret")

    client = await Client.connect(await serve(handler))
    client.get()
    status, _, body = await client.answer()
    assert (status, body) == (500, b"This request caused apiserver to panic. Look in the logs for details.\n")
    assert "secret" in caplog.text
    client.get()
    assert (await client.answer())[0] == 500
    await client.close()


async def test_head_has_the_length_and_no_body(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"hello")

    client = await Client.connect(await serve(handler))
    for _ in range(2):
        client.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        status, headers, _ = await client.answer(body=False)
        assert (status, headers["content-length"]) == (200, "5")
    await client.close()


async def test_a_stream_sends_its_head_at_once_and_keeps_the_connection(serve: Serve) -> None:
    go = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            await go.wait()
            writer.write(b"one")
            writer.write(b"")
            writer.write(b"two")

        return StreamResponse(200, [(b"content-type", b"text/plain")], run)

    client = await Client.connect(await serve(handler))
    for _ in range(2):
        go.clear()
        client.get()
        status, headers = await client.head()
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        go.set()
        assert [await client.chunk() for _ in range(3)] == [b"one", b"two", b""]
    await client.close()


async def test_a_failing_stream_is_cut_not_ended(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            writer.write(b"half")
            await asyncio.sleep(0)
            raise RuntimeError("broken")

        return StreamResponse(200, [], run)

    client = await Client.connect(await serve(handler))
    client.get()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await client.answer()
    await client.close()


async def test_a_stream_ends_when_its_client_goes(serve: Serve) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        return StreamResponse(200, [], run)

    client = await Client.connect(await serve(handler))
    client.get()
    await asyncio.wait_for(begun.wait(), 5)
    await client.close()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_slow_reader_shows_in_buffered_and_stops_drain(serve: Serve, pki: Pki, tls: ServingTLS) -> None:
    for config in (None, tls):
        stuck, gone = asyncio.Event(), asyncio.Event()

        async def handler(request: Request, stuck: asyncio.Event = stuck, gone: asyncio.Event = gone) -> Response:
            async def run(writer: StreamWriter) -> None:
                try:
                    while True:
                        writer.write(b"x" * 65536)
                        if writer.buffered() > 4 << 20:
                            stuck.set()
                            await writer.drain()
                except (ClientGone, asyncio.CancelledError):
                    gone.set()
                    raise

            return StreamResponse(200, [], run)

        client = await Client.connect(await serve(handler, config), client_context(pki) if config else None)
        client.get()
        await asyncio.wait_for(stuck.wait(), 10)
        client.writer.transport.abort()
        await asyncio.wait_for(gone.wait(), 10)


class Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def upgrading(request: Request) -> Response:
    async def run(connection: Hijacked) -> None:
        connection.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
        )
        echo = Echo()
        connection.take_over(echo)
        await echo.done

    return UpgradeResponse(run)


@pytest.mark.parametrize("secure", [False, True])
async def test_an_upgraded_connection_keeps_the_bytes_that_came_early(
    serve: Serve, pki: Pki, tls: ServingTLS, secure: bool
) -> None:
    server = await serve(upgrading, tls if secure else None)
    client = await Client.connect(server, client_context(pki) if secure else None)
    client.send(
        b"POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\nearly"
    )
    status, headers = await client.head()
    assert (status, headers["upgrade"]) == (101, "spdy/3.1")
    assert await client.reader.readexactly(5) == b"EARLY"
    client.send(b"late" * 100_000)
    assert await client.reader.readexactly(400_000) == b"LATE" * 100_000
    await client.close()


async def test_bytes_after_a_pipelined_upgrade_request_go_to_the_upgraded_connection(serve: Serve) -> None:
    release = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/first":
            await release.wait()
            return Response(200, [], b"first")
        await asyncio.sleep(0.01)
        return await upgrading(request)

    client = await Client.connect(await serve(handler))
    client.get("/first")
    client.send(
        b"POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\nearly"
    )
    await asyncio.sleep(0.05)
    release.set()
    assert (await client.answer())[2] == b"first"
    assert (await client.head())[0] == 101
    assert await client.reader.readexactly(5) == b"EARLY"
    await client.close()


async def test_stopping_ends_streams_first_lets_requests_finish_and_rejects_connections(serve: Serve) -> None:
    begun, end, finish = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            begun.set()
            await end.wait()
            writer.write(b"last")

        if request.path == "/watch":
            return StreamResponse(200, [], run)
        if request.path == "/slow":
            await finish.wait()
        return Response(200, [], b"ok")

    server = await serve(handler)
    server.end_streams.append(end.set)
    watch, slow, idle = [await Client.connect(server) for _ in range(3)]
    watch.get("/watch")
    slow.get("/slow")
    idle.get("/")
    assert (await idle.answer())[2] == b"ok"
    await asyncio.wait_for(begun.wait(), 5)
    port = server.port
    stopping = asyncio.create_task(server.stop(5))
    assert (await watch.answer())[2] == b"last"
    assert await idle.reader.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    assert not stopping.done()
    finish.set()
    status, headers, body = await slow.answer()
    assert (status, headers["connection"], body) == (200, "close", b"ok")
    await asyncio.wait_for(stopping, 5)
    for client in (watch, slow, idle):
        await client.close()


async def test_requests_that_do_not_end_are_cut_after_the_timeout(serve: Serve) -> None:
    begun = asyncio.Event()

    async def handler(request: Request) -> Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    server = await serve(handler)
    client = await Client.connect(server)
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.wait_for(begun.wait(), 5)
    await asyncio.wait_for(server.stop(0.05), 5)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await client.head()
    await client.close()


async def test_two_servers_share_a_loop_and_leave_signals_alone() -> None:
    import signal

    async def handler(request: Request) -> Response:
        return Response(200, [], b"ok")

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    servers = [HttpServer(handler), HttpServer(handler)]
    for server in servers:
        await server.start()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert servers[0].port != servers[1].port
    for server in servers:
        await server.stop()


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Any) -> None:
    from tetrapod.generic.certificates import write_pki
    from tetrapod.generic.http.tls import CertificatePair

    pki = write_pki(tmp_path, ["localhost"])

    async def handler(request: Request) -> Response:
        return Response(200, [], b"ok")

    server = HttpServer(handler, tls=ServingTLS([CertificatePair(str(pki.serving[0]), str(pki.serving[1]))]))
    await server.start()

    async def serial() -> str:
        client = await Client.connect(server, client_context(pki))
        found = client.writer.get_extra_info("peercert")["serialNumber"]
        await client.close()
        return str(found)

    first = await serial()
    write_pki(tmp_path, ["localhost", "example.com"])
    server._tick(60)
    assert await serial() != first
    await server.stop()
