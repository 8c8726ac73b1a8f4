"""Backends that send garbage, too much, slowly or nothing.

The messages are those of kube-apiserver v1.37.1 for the same bytes.
"""

from __future__ import annotations

import asyncio

import orjson
import pytest

from integration.http.conftest import Client, Serve
from integration.proxy.conftest import Front, RawBackend, endpoint_of, forwarding
from tetrapod.generic.filters.deadline import with_request_deadline
from tetrapod.generic.http.peers import RESPONSE_HEADERS
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.proxy import BackendPool, forward
from tetrapod.generic.proxy.headers import DROPPED_FROM_BACKENDS, DROPPED_FROM_PEERS

BROKEN = "net/http: HTTP/1.x transport connection broken: "
OK = b"HTTP/1.1 200 OK\r\n"


def answering(data: bytes) -> RawBackend:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()

    return RawBackend(serve)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "EOF"),
        (b"garbage\r\n\r\n", f'{BROKEN}malformed HTTP response "garbage"'),
        (b"\0\1garbage garbage\r\n\r\n", f'{BROKEN}malformed HTTP status code "garbage"'),
        (b"HTTP/1.1 1000 Odd\r\n\r\n", f'{BROKEN}malformed HTTP status code "1000"'),
        (b"HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", f'{BROKEN}malformed HTTP status code "099"'),
        (b"HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n", f'{BROKEN}malformed HTTP status code "600"'),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", f'{BROKEN}malformed HTTP status code "999"'),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, f"{BROKEN}net/http: too many 1xx informational responses"),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 6 + OK + b"\r\n",
            f"{BROKEN}net/http: too many 1xx informational responses",
        ),
        (OK + b"Content-Length: ten\r\n\r\nok", f'{BROKEN}bad Content-Length "ten"'),
        (OK + b"Content-Length: -1\r\n\r\nok", f'{BROKEN}bad Content-Length "-1"'),
        (
            OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
            f'{BROKEN}http: message cannot contain multiple Content-Length headers; got ["2" "3"]',
        ),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nok", f'{BROKEN}unsupported transfer encoding: "gzip"'),
        (OK + b"broken header\r\n\r\n", f'{BROKEN}malformed MIME header: missing colon: "broken header"'),
        (OK + b"X-A: 1\x002\r\n\r\n", f'{BROKEN}malformed MIME header line: "X-A: 1\\x002"'),
        (
            OK + b"X-A: " + b"a" * (11 << 20) + b"\r\n\r\n",
            f"{BROKEN}net/http: server response headers exceeded 10485760 bytes; aborted",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw",
            'backend tried to switch protocol "x" when "" was requested\n',
        ),
    ],
    ids=lambda value: value[-24:] if isinstance(value, str) else "",
)
async def test_an_invalid_response_is_reported_like_upstream_and_the_connection_is_kept(
    front: Front, answer: bytes, text: str
) -> None:
    async with answering(answer) as backend:
        client = await front(backend.endpoint)
        for _ in range(2):
            client.get()
            status, _, body = await client.answer()
            assert (status, body.decode()) == (503, text)


async def test_surplus_bytes_of_a_backend_do_not_reach_another_response(front: Front) -> None:
    async with answering(
        OK + b"Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    ) as backend:
        client = await front(backend.endpoint)
        for _ in range(3):
            client.get()
            assert (await client.answer())[2] == b"ok"
        assert backend.connections == 3


@pytest.mark.parametrize("announced", [b"Trailer: X-Sum\r\n", b""])
@pytest.mark.parametrize("whole", [True, False])
async def test_trailers_follow_the_body(front: Front, announced: bytes, whole: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await reader.readuntil(b"\r\n\r\n")
            assert b"te: trailers" in asked
            writer.write(OK + announced + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
            if not whole:
                await released.wait()
            writer.write(b"0\r\nX-Sum: 7\r\n\r\n")

    released = asyncio.Event()
    async with RawBackend(serve) as backend:
        client = await front(backend.endpoint)
        for _ in range(2):
            released.clear()
            client.get(headers="TE: trailers\r\n")
            status, headers = await client.head()
            assert (status, headers.get("trailer")) == (200, "x-sum" if announced else None)
            assert await client.chunk() == b"ok"
            released.set()
            assert await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 5) == b"0\r\nX-Sum: 7\r\n\r\n"
        assert backend.connections == 1


async def test_redirects_are_passed_on_or_rejected(serve: Serve, pool: BackendPool, front: Front) -> None:
    async with answering(
        b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere/x\r\nContent-Length: 0\r\n\r\n"
    ) as backend:
        client = await front(backend.endpoint)
        client.get()
        status, headers, _ = await client.answer()
        assert (status, headers["location"]) == (302, "https://elsewhere/x")
        strict = await Client.connect(await serve(forwarding(pool, backend.endpoint, redirects=False)))
        strict.get()
        status, headers, body = await strict.answer()
        assert (status, body) == (502, b"the backend attempted to redirect this request, which is not permitted")
        assert "location" not in headers
        await strict.close()


def within(seconds: float, handler: Handler) -> Handler:
    return with_request_deadline(handler, seconds)


async def test_a_backend_without_a_response_is_awaited_until_the_request_deadline(
    serve: Serve, pool: BackendPool
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with RawBackend(silent) as backend:
        client = await Client.connect(await serve(within(0.2, forwarding(pool, backend.endpoint))))
        client.get()
        status, _, body = await client.answer()
        assert status == 504
        assert b"Timeout: request did not complete within the allotted timeout" in body
        await asyncio.wait_for(backend.closed.wait(), 5)
        await client.close()


@pytest.mark.parametrize("framing", [b"Content-Length: 1000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
async def test_a_backend_that_sends_byte_by_byte_is_cut_off(serve: Serve, pool: BackendPool, framing: bytes) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + framing)
        while not writer.is_closing():
            writer.write(b"1\r\nx\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with RawBackend(drip) as backend:
        client = await Client.connect(await serve(within(0.3, forwarding(pool, backend.endpoint))))
        client.get()
        assert (await client.head())[0] == 200
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            async with asyncio.timeout(10):
                while True:
                    await client.reader.readexactly(1)
        await asyncio.wait_for(backend.closed.wait(), 5)
        assert pool.open_connections == 0
        await client.close()


@pytest.mark.parametrize("side", ["client", "backend"])
async def test_an_upgraded_stream_that_ends_on_one_side_ends_on_the_other_after_all_its_bytes(
    front: Front, side: str
) -> None:
    heard = asyncio.get_running_loop().create_future()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" + b"b" * 300_000)
        await writer.drain()
        if side == "client":
            heard.set_result(await reader.read())

    async with RawBackend(talk) as backend:
        client = await front(backend.endpoint)
        client.get("/", "Connection: Upgrade\r\nUpgrade: x\r\n")
        assert (await client.head())[0] == 101
        assert await client.reader.readexactly(300_000) == b"b" * 300_000
        if side == "client":
            client.send(b"a" * 300_000)
            client.writer.write_eof()
            assert await asyncio.wait_for(heard, 5) == b"a" * 300_000
        assert await asyncio.wait_for(client.reader.read(), 5) == b""


async def test_a_client_that_closes_its_side_has_disconnected(front: Front) -> None:
    """As in Go's server, a client that closes its sending side has disconnected: its request to the backend is
    cancelled.
    """
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()

    async with RawBackend(silent) as backend:
        client = await front(backend.endpoint)
        client.get()
        await asyncio.wait_for(asked.wait(), 5)
        client.writer.write_eof()
        await asyncio.wait_for(backend.closed.wait(), 5)


async def test_a_request_of_chunks_with_trailers_arrives_whole(serve: Serve, front: Front) -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def collect(request: Request) -> Response:
        body = b""
        while data := await request.body.chunk():
            body += data
        got.put_nowait(body)
        return Response(200, [], b"ok")

    server = await serve(collect)
    client = await front(endpoint_of(server))
    for _ in range(2):
        client.send(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
            b"X-Sum: 1\r\n\r\n"
        )
        assert (await client.answer())[2] == b"ok"
        assert got.get_nowait() == b"abcde"


@pytest.mark.parametrize(
    ("sent", "text"),
    [(b"zz\r\n", "invalid byte in chunk length"), (b"3\r\nabcdef\r\n", "malformed chunked encoding")],
    ids=["no chunk", "overlong"],
)
async def test_a_request_whose_body_breaks_off_is_answered_at_once_and_never_whole(
    front: Front, sent: bytes, text: str
) -> None:
    received = bytearray()

    async def serve_backend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 16):
            received.extend(piece)

    async with RawBackend(serve_backend) as backend:
        client = await front(backend.endpoint)
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + sent)
        async with asyncio.timeout(10):
            status, _, body = await client.answer()
            await backend.closed.wait()
    assert (status, orjson.loads(body)["message"]) == (500, text)
    assert b"0\r\n\r\n" not in received


async def test_small_chunks_of_a_backend_are_sent_on_together(front: Front) -> None:
    """Each chunk that is written costs ten times what it costs to parse it."""
    size = 50_000
    chunks = b"1\r\na\r\n" * size
    async with answering(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n") as backend:
        client = await front(backend.endpoint)
        client.get()
        assert (await client.head())[0] == 200
        lengths = []
        while chunk := await client.chunk():
            assert chunk == b"a" * len(chunk)
            lengths.append(len(chunk))
    assert sum(lengths) == size
    assert len(lengths) <= size // 100


async def test_a_trailer_without_end_is_not_collected(front: Front) -> None:
    """Go's transport stops at 10 MiB too."""

    async def serve_backend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: ")
        while not writer.transport.is_closing():
            writer.write(b"a" * (1 << 20))
            await writer.drain()

    async with RawBackend(serve_backend) as backend:
        client = await front(backend.endpoint)
        client.get()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.IncompleteReadError):
                await client.answer()
            await backend.closed.wait()


async def test_headers_between_services_are_ignored_from_backends(serve: Serve, pool: BackendPool) -> None:
    async def pretending(request: Request) -> Response:
        return Response(200, [(name, b"1") for name in RESPONSE_HEADERS] + [(b"x-other", b"1")])

    backend = endpoint_of(await serve(pretending))
    for to_service in (False, True):

        async def handler(request: Request, to_service: bool = to_service) -> Response:
            return await forward(
                pool, backend, request, dropped=DROPPED_FROM_PEERS if to_service else DROPPED_FROM_BACKENDS
            )

        client = await Client.connect(await serve(handler))
        client.get()
        _, headers, _ = await client.answer()
        assert headers["x-other"] == "1"
        assert [name.decode() in headers for name in RESPONSE_HEADERS] == [to_service] * len(RESPONSE_HEADERS)
        await client.close()


async def test_some_informational_responses_before_the_final_one_are_skipped(front: Front) -> None:
    async with answering(
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 5 + OK + b"Content-Length: 2\r\n\r\nok"
    ) as backend:
        client = await front(backend.endpoint)
        client.get()
        status, _, body = await client.answer()
        assert (status, body) == (200, b"ok")


async def test_identity_headers_of_a_backend_do_not_reach_the_client(front: Front) -> None:
    forged = (
        b"X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nX-Remote-Extra-Scopes: all\r\nX-Other: kept\r\n"
    )
    async with answering(OK + forged + b"Content-Length: 2\r\n\r\nok") as backend:
        client = await front(backend.endpoint)
        client.get()
        _, headers, _ = await client.answer()
        assert headers["x-other"] == "kept"
        assert not [name for name in headers if name.startswith("x-remote-")]
