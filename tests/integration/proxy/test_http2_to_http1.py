"""Requests that arrive over HTTP/2 and go on over HTTP/1.1: the backend sees the same requests, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from integration.http.conftest import Serve, client_context
from integration.proxy.conftest import RawBackend, forwarding
from support.http2_client import Http2Client
from support.waiting import eventually
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.http2 import frames
from tetrapod.generic.proxy import BackendError, BackendPool

ANOTHER = b"GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Remote-User: root\r\n\r\n"
SMUGGLED = b"0\r\n\r\n" + ANOTHER
LONG = 150_000
"""Bytes of a body that the proxy sends on before it has arrived completely."""


@dataclass
class Received:
    """A request as a strict HTTP/1.1 server reads it."""

    connection: int
    line: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Backend(RawBackend):
    """A backend that answers each complete request with 200."""

    requests: list[Received] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.answer)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self.connections
        while True:
            line, *lines = (
                (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            )
            self.heads.append(line)
            headers = [(name.lower(), value) for name, _, value in (found.partition(": ") for found in lines)]
            self.requests.append(Received(connection, line, headers, await body(reader, dict(headers))))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    assert not {"content-length", "transfer-encoding"} <= headers.keys()
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        assert await reader.readexactly(2) == b"\r\n"
    assert await reader.readexactly(2) == b"\r\n"
    return b"".join(parts)


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with Backend() as backend:
        yield backend


@pytest.fixture
async def client(
    serve: Serve, tls: ServingTLS, pki: Pki, pool: BackendPool, backend: Backend
) -> AsyncIterator[Http2Client]:
    server = await serve(forwarding(pool, backend.endpoint), tls=tls)
    client = await Http2Client.connect(server.port, client_context(pki))
    yield client
    await client.close()


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_looks_like_a_request_stays_a_body(
    client: Http2Client, backend: Backend, declared: bool
) -> None:
    length = [("content-length", str(3 * len(SMUGGLED)))] if declared else []
    stream = client.request("/first", *length, method="POST", end=False)
    for piece in (SMUGGLED, SMUGGLED[:5], SMUGGLED[5:]):
        client.data(stream, piece)
    padded = bytes((9,)) + SMUGGLED + bytes(9)
    client.frame(frames.DATA, frames.PADDED | frames.END_STREAM, stream, padded)
    assert (await client.answer(stream)).status == 200
    assert (await client.get("/second")).status == 200
    assert [(request.line, request.body) for request in backend.requests] == [
        ("POST /first HTTP/1.1", 3 * SMUGGLED),
        ("GET /second HTTP/1.1", b""),
    ]


async def test_trailers_of_a_client_are_not_sent_on(client: Http2Client, backend: Backend) -> None:
    stream = client.request("/first", ("trailer", "x-remote-user"), method="POST", end=False)
    client.data(stream, b"body")
    client.headers([("x-remote-user", "root")], stream=stream)
    assert (await client.answer(stream)).status == 200
    assert (await client.get("/second")).status == 200
    assert [(request.line, request.body) for request in backend.requests] == [
        ("POST /first HTTP/1.1", b"body"),
        ("GET /second HTTP/1.1", b""),
    ]


async def test_headers_of_a_client_reach_the_backend_once_and_its_identity_does_not(
    client: Http2Client, backend: Backend
) -> None:
    fields = [("x-remote-user", "root"), ("x-remote-group", "system:masters"), ("x-remote-extra-a", "b")]
    fields += [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-kept", " 1 ")]
    assert (await client.get("/a%2fb%0d%0a?c=d%0d%0a", *fields)).status == 200
    (request,) = backend.requests
    assert request.line == "GET /a%2fb%0d%0a?c=d%0d%0a HTTP/1.1"
    assert sorted(request.headers) == [
        ("cookie", "a=1; b=2"),
        ("host", backend.endpoint.authority),
        ("te", "trailers"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-kept", "1"),
        ("x-remote-group", "g"),
        ("x-remote-user", "alice"),
    ]


@pytest.mark.parametrize("end", ["short", "long", "reset"])
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_broken_off_ends_its_connection_to_the_backend(
    client: Http2Client, backend: Backend, declared: bool, end: str
) -> None:
    """Otherwise the next request, perhaps of another user, would become the rest of this body."""
    if end != "reset" and not declared:
        pytest.skip("not applicable: a body without a declared length has no other length")
    length = [("content-length", str(len(SMUGGLED) + LONG))] if declared else []
    stream = client.request("/broken", *length, method="POST", end=False)
    client.data(stream, SMUGGLED)

    async def has_begun() -> bool:
        return backend.heads == ["POST /broken HTTP/1.1"]

    await eventually(has_begun)
    if end == "reset":
        client.send(frames.reset(stream, frames.CANCEL))
    else:
        client.data(stream, b"" if end == "short" else b"x" * LONG + ANOTHER, end=True)
        assert (await client.answer(stream)).reset == frames.PROTOCOL_ERROR
    assert (await client.get("/next")).status == 200
    assert backend.heads == ["POST /broken HTTP/1.1", "GET /next HTTP/1.1"]
    (request,) = backend.requests
    assert (request.connection, request.line, request.body) == (2, "GET /next HTTP/1.1", b"")


class Pieces:
    """A request body whose pieces may have another length than declared."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    async def read(self, limit: int) -> bytes:
        raise NotImplementedError

    async def chunk(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


@pytest.mark.parametrize(("pieces", "size"), [((b"12345", b"67890" + ANOTHER), 10 + len(ANOTHER)), ((b"12345",), 5)])
async def test_the_proxy_sends_no_body_of_another_length_than_declared(
    pool: BackendPool, backend: Backend, pieces: tuple[bytes, ...], size: int
) -> None:
    with pytest.raises(BackendError, match=f"http: ContentLength=10 with Body length {size}"):
        await pool.exchange(backend.endpoint, "POST", "/broken", [], Pieces(*pieces), length=10)
    exchange = await pool.exchange(backend.endpoint, "GET", "/next", [])
    assert await exchange.read() == b"ok"
    assert [request.line for request in backend.requests] == ["GET /next HTTP/1.1"]
