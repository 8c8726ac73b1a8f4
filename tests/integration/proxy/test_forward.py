"""Requests through the proxy, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib

import orjson
import pytest

from integration.http.conftest import Client, Serve
from integration.http.test_answers import upgrading
from integration.http.test_requests import echo
from integration.proxy.conftest import Context, Front, RawBackend, endpoint_of, forwarding
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint


async def test_method_path_query_body_and_identity_arrive(serve: Serve, front: Front) -> None:
    backend = endpoint_of(await serve(echo))
    client = await front(backend)
    client.send(b"PUT /a%2Fb?x=%20 HTTP/1.1\r\nHost: front\r\nX-Remote-User: root\r\nContent-Length: 4\r\n\r\nbody")
    status, _, body = await client.answer()
    found = orjson.loads(body)
    headers = dict(found["headers"])
    assert status == 200
    assert (found["method"], found["raw"], found["query"], found["body"]) == ("PUT", "/a%2Fb", "x=%20", "body")
    assert (headers["x-remote-user"], headers["host"], headers["x-forwarded-for"]) == (
        "alice",
        backend.authority,
        "127.0.0.1",
    )


async def test_connections_are_kept_and_shared(serve: Serve, front: Front, pool: BackendPool) -> None:
    client = await front(endpoint_of(await serve(echo)))
    for _ in range(5):
        client.get()
        await client.answer()
        client.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.answer(body=False)
    assert pool.open_connections == 1


async def test_mutual_tls_names_the_proxy(serve: Serve, pki: Pki, tls: ServingTLS, pool: BackendPool) -> None:
    async def whoami(request: Request) -> Response:
        return Response(200, [], b"known" if request.peer_certificates else b"unknown")

    server = await serve(whoami, tls)
    certificate, key = map(str, pki.front_proxy_client)
    good = ClientTLS(ca_data=pki.ca.read_text(), certificate=certificate, key=key, server_name="localhost")
    url = f"https://127.0.0.1:{server.port}/"
    assert (await pool.fetch("GET", url, tls=good))[2] == b"known"
    assert (await pool.fetch("GET", url, tls=ClientTLS(insecure=True)))[2] == b"unknown"
    with pytest.raises(BackendError, match="certificate"):
        await pool.fetch("GET", url, tls=ClientTLS(ca_data=pki.client_ca.read_text()))
    with pytest.raises(BackendError, match="certificate"):
        await pool.fetch("GET", url, tls=ClientTLS(ca_data=pki.ca.read_text(), server_name="elsewhere"))


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_huge_bodies_flow_both_ways_without_being_collected(serve: Serve, front: Front, framing: str) -> None:
    size, piece = 40 << 20, b"z" * (1 << 20)

    async def mirror(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            while data := await request.body.chunk():
                writer.write(data)
                await writer.drain()

        return StreamResponse(200, [(b"content-length", str(size).encode())] if framing == "length" else [], run)

    client = await front(endpoint_of(await serve(mirror)))
    head = f"Content-Length: {size}" if framing == "length" else "Transfer-Encoding: chunked"
    client.send(f"POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())

    async def upload() -> None:
        for _ in range(size // len(piece)):
            client.send(piece if framing == "length" else b"%x\r\n%b\r\n" % (len(piece), piece))
            await client.writer.drain()
        if framing == "chunked":
            client.send(b"0\r\n\r\n")

    uploading = asyncio.create_task(upload())
    _, _, body = await client.answer()
    await uploading
    assert hashlib.sha256(body).digest() == hashlib.sha256(piece * (size // len(piece))).digest()


async def test_a_watch_arrives_event_by_event_and_ends_with_its_client(serve: Serve, front: Front) -> None:
    events: asyncio.Queue[bytes] = asyncio.Queue()
    ended = asyncio.Event()

    async def watch(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            try:
                while True:
                    writer.write(await events.get())
            finally:
                ended.set()

        return StreamResponse(200, [], run)

    client = await front(endpoint_of(await serve(watch)))
    client.get()
    assert (await client.head())[0] == 200
    for event in (b"one\n", b"two\n"):
        events.put_nowait(event)
        assert await asyncio.wait_for(client.chunk(), 5) == event
    await client.close()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_waiting_request_ends_when_its_client_disconnects(front: Front) -> None:
    begun = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await reader.read()

    async with RawBackend(silent) as backend:
        for method in ("GET", "POST"):
            begun.clear()
            backend.closed.clear()
            client = await front(backend.endpoint)
            client.send(f"{method} / HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await asyncio.wait_for(begun.wait(), 5)
            await client.close()
            await asyncio.wait_for(backend.closed.wait(), 5)


@pytest.mark.parametrize("early", [b"", b"early"])
async def test_an_upgrade_becomes_a_splice(serve: Serve, front: Front, early: bytes) -> None:
    client = await front(endpoint_of(await serve(upgrading)))
    client.send(
        b"POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"
        + early
    )
    status, headers = await client.head()
    assert (status, headers["upgrade"]) == (101, "spdy/3.1")
    assert await client.reader.readexactly(len(early)) == early.upper()
    client.send(b"late" * 500_000)
    assert await client.reader.readexactly(2_000_000) == b"LATE" * 500_000


async def test_the_first_bytes_of_an_upgraded_backend_are_not_lost(front: Front) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
        writer.write(await reader.readexactly(3))

    async with RawBackend(greet) as backend:
        client = await front(backend.endpoint)
        client.get("/", "Connection: Upgrade\r\nUpgrade: x\r\n")
        assert (await client.head())[0] == 101
        client.send(b"abc")
        assert await client.reader.read() == b"helloabc"


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("size", [5, 50_000])
@pytest.mark.parametrize("notify", [False, True], ids=["socket closed", "connection closed"])
@pytest.mark.parametrize("together", [False, True], ids=["after the head", "with the head"])
async def test_the_last_bytes_of_an_upgraded_backend_are_not_lost(
    serve: Serve, pool: BackendPool, context: Context, together: bool, notify: bool, size: int, tls: bool
) -> None:
    """The backend ends its connection before the proxy joins it to the client's, as a kubelet after a short exec."""
    head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    upgraded = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if together:
            writer.write(head + b"d" * size)
        else:
            writer.write(head)
            await upgraded.wait()
            writer.write(b"d" * size)
        if not notify:
            for _ in range(100):  # of the event loop, in which the data is sent
                await asyncio.sleep(0)
            writer.transport.abort()

    async with RawBackend(greet, context() if tls else None) as backend:
        forward = forwarding(pool, backend.endpoint)

        async def late(request: Request) -> Response:
            response = await forward(request)
            upgraded.set()
            await backend.closed.wait()
            for _ in range(100):  # of the event loop, in which the end arrives
                await asyncio.sleep(0)
            return response

        client = await Client.connect(await serve(late))
        client.get("/", "Connection: Upgrade\r\nUpgrade: x\r\n")
        assert (await client.head())[0] == 101
        assert len(await client.reader.read()) == size
        await client.close()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
async def test_a_body_that_ends_with_its_connection_is_whole_for_a_slow_client(
    front: Front, context: Context, tls: bool
) -> None:
    size = 20 << 20

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"d" * size)

    async with RawBackend(answer, context() if tls else None) as backend:
        client = await front(backend.endpoint)
        client.get()
        await backend.closed.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert len((await client.answer())[2]) == size


async def test_a_rejected_upgrade_is_an_ordinary_answer(serve: Serve, front: Front) -> None:
    client = await front(endpoint_of(await serve(echo)))
    for _ in range(2):
        client.get("/x", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
        status, _, body = await client.answer()
        assert (status, orjson.loads(body)["path"]) == (200, "/x")


async def test_answers_of_every_framing(front: Front) -> None:
    answers = [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTrailer: 1\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    ]

    async def scripted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)

    async with RawBackend(scripted) as backend:
        client = await front(backend.endpoint)
        got = []
        for _ in answers:
            client.get()
            status, headers = await client.head()
            length = int(headers.get("content-length", 0))
            body = await client.reader.readexactly(length) if length else b""
            if headers.get("transfer-encoding") == "chunked":
                while chunk := await client.chunk():
                    body += chunk
            got.append((status, body))
        assert got == [(200, b"ok"), (200, b"ok"), (304, b""), (204, b""), (200, b""), (200, b"until the end")]
        assert backend.connections == 1


async def test_a_stale_connection_is_replaced_for_reads_and_reported_for_writes(front: Front) -> None:
    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")  # the second request gets no response

    async with RawBackend(one_each) as backend:
        client = await front(backend.endpoint)
        for _ in range(2):
            client.get()
            assert (await client.answer())[0] == 200
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert (await client.answer())[0] == 503


async def test_an_answer_that_breaks_off_is_cut_for_the_client_too(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await writer.drain()

    async with RawBackend(broken) as backend:
        client = await front(backend.endpoint)
        client.get()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.answer()
    # A failing service is logged in one line, without a traceback.
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
    assert "did not complete its response to /: unexpected EOF" in caplog.text


async def test_an_early_rejection_of_an_upload_reaches_the_client(serve: Serve, front: Front) -> None:
    async def reject(request: Request) -> Response:
        return Response(413, [], b"too much")

    client = await front(endpoint_of(await serve(reject)))
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nbegin")
    status, _, body = await client.answer()
    assert (status, body) == (413, b"too much")


async def test_a_refused_connection_is_reported_like_upstream(front: Front, pool: BackendPool) -> None:
    async with RawBackend(lambda r, w: asyncio.sleep(0)) as backend:
        endpoint = backend.endpoint
    with pytest.raises(BackendError, match=f"dial tcp {endpoint.authority}: connect: connection refused"):
        await pool.fetch("GET", f"http://{endpoint.authority}/")


async def test_fetch_gives_up_in_time_and_closes(pool: BackendPool) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with RawBackend(silent) as backend:
        with pytest.raises(TimeoutError):
            await pool.fetch("GET", f"http://{backend.endpoint.authority}/", timeout=0.05)
        await asyncio.wait_for(backend.closed.wait(), 5)


async def test_a_client_of_streams_reads_pieces(serve: Serve, pool: BackendPool) -> None:
    async def count(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            for n in range(3):
                writer.write(b"%d\n" % n)
                await asyncio.sleep(0)

        return StreamResponse(200, [], run)

    server = await serve(count)
    pieces = [piece async for _, piece in pool.stream("GET", f"http://127.0.0.1:{server.port}/")]
    assert b"".join(pieces) == b"0\n1\n2\n"


def test_endpoints_write_ipv6_in_brackets() -> None:
    assert Endpoint("::1", 443).authority == "[::1]:443"


async def test_a_client_that_vanishes_mid_upload_does_not_finish_it(front: Front) -> None:
    got = asyncio.get_running_loop().create_future()

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.set_result(await reader.read())

    async with RawBackend(collect) as backend:
        client: Client = await front(backend.endpoint)
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await client.writer.drain()
        await client.close()
        with contextlib.suppress(ConnectionError):
            assert not (await asyncio.wait_for(got, 5)).endswith(b"0\r\n\r\n")


async def test_many_at_once_get_each_their_own_answer(serve: Serve, front: Front, pool: BackendPool) -> None:
    endpoint = endpoint_of(await serve(echo))

    async def one(n: int) -> None:
        for m in range(20):
            path = f"/{n}/{m}"
            _, _, body = await pool.fetch("POST", f"http://{endpoint.authority}{path}", b"x" * n)
            found = orjson.loads(body)
            assert (found["path"], len(found["body"])) == (path, n)

    await asyncio.gather(*(one(n) for n in range(40)))
    assert pool.open_connections <= 40
