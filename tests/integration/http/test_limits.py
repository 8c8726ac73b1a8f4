"""Limits of a request's head: larger heads are rejected with a Status before any work is done for the request."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from integration.http.conftest import Client, Serve, client_context
from support.waiting import eventually
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.limits import MAX_HEAD, MAX_HEADER, MAX_HEADERS, MAX_PATH, MAX_QUERY
from tetrapod.generic.http.protocol import HttpProtocol
from tetrapod.generic.http.receiving import MOST_CHUNKS
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.tls import ServingTLS

_HEAD = b"GET /%b HTTP/1.1\r\nHost: x\r\n%b\r\n"
_BEYOND = {
    "path": (_HEAD % (b"%22" * 100_000, b""), 414, f"path is longer than {MAX_PATH} bytes"),
    "query": (_HEAD % (b"?labelSelector=" + b"k," * MAX_QUERY, b""), 431, f"head is longer than {MAX_HEAD} bytes"),
    "shorter query": (_HEAD % (b"?" + b"a" * (MAX_QUERY + 1), b""), 414, f"query is longer than {MAX_QUERY} bytes"),
    "header": (
        _HEAD % (b"", b"Accept: " + b"a/b," * (MAX_HEADER // 4) + b"\r\n"),
        431,
        f"longer than {MAX_HEADER} bytes",
    ),
    "headers": (_HEAD % (b"", b"X-Remote-Group: g\r\n" * 20_000), 431, f"more than {MAX_HEADERS} headers"),
    "least headers": (_HEAD % (b"", b"a:\r\n" * 100_000), 431, f"more than {MAX_HEADERS} headers"),
    "head": (_HEAD % (b"", b"X: " + b"a" * (MAX_HEAD * 2) + b"\r\n"), 431, f"head is longer than {MAX_HEAD} bytes"),
}


async def described(request: Request) -> Response:
    lengths = {"path": len(request.raw_path), "query": len(request.query_string), "headers": len(request.headers)}
    return Response(200, [], orjson.dumps(lengths))


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("beyond", _BEYOND)
async def test_a_head_beyond_a_limit_is_rejected_with_a_status(
    serve: Serve, pki: Pki, tls: ServingTLS, beyond: str, secure: bool
) -> None:
    raw, code, message = _BEYOND[beyond]
    server = await serve(described, tls) if secure else await serve(described)
    client = await Client.connect(server, client_context(pki) if secure else None)
    client.send(raw)
    status, headers, body = await client.answer()
    answered = orjson.loads(body)
    assert (status, answered["kind"], answered["code"]) == (code, "Status", code)
    assert message in answered["message"]
    assert (headers["content-type"], headers["connection"]) == ("application/json", "close")
    await client.close()


async def test_the_largest_heads_of_real_clients_are_accepted(serve: Serve) -> None:
    """An exec with a long script, a user with a thousand groups, a large ticket, and cookies; all on one connection."""
    client = await Client.connect(await serve(described))
    for target, headers in [
        (b"a" * (MAX_PATH - 1), b""),
        (b"?command=" + b"x" * 200_000, b""),
        (b"", b"Impersonate-Group: CN=some-group,OU=groups,DC=corp,DC=example,DC=com\r\n" * 2000),
        (b"", b"Authorization: Negotiate " + b"A" * 60_000 + b"\r\n" + b"Cookie: a=" + b"b" * 8000 + b"\r\n"),
    ]:
        client.send(_HEAD % (target, headers))
        assert (await client.answer())[0] == 200
    await client.close()


async def test_many_pipelined_requests_are_all_answered_in_order(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    client.send(b"".join(_HEAD % (b"?" + b"a" * (number % 50), b"") for number in range(10_000)))
    for number in range(10_000):
        status, _, body = await client.answer()
        assert (status, orjson.loads(body)["query"]) == (200, number % 50)
    await client.close()


async def test_a_head_in_small_pieces_is_parsed_line_by_line(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser copies a line with each piece that arrives, so it is given complete lines only."""
    pieces: list[int] = []
    on_url = HttpToolsProtocol.on_url

    def counted(self: HttpToolsProtocol, url: bytes) -> None:
        pieces.append(len(url))
        on_url(self, url)

    monkeypatch.setattr(HttpToolsProtocol, "on_url", counted)
    server = await serve(described)
    client = await Client.connect(server)
    raw = _HEAD % (b"?" + b"a" * 2000, b"X-Long: " + b"b" * 2000 + b"\r\nX-Short:c\r\n")

    async def connections() -> list[Any]:
        return list(server.state.connections)

    (connection,) = await eventually(connections)
    for at in range(len(raw)):
        connection.data_received(raw[at : at + 1])
    status, _, body = await client.answer()
    assert (status, orjson.loads(body)) == (200, {"path": 1, "query": 2000, "headers": 3})
    assert sum(pieces) == 2002
    assert len(pieces) <= 2
    await client.close()


async def test_small_chunks_are_decoded_in_steps_between_which_others_are_served(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many connections send such chunks, a step of the event loop decodes those of one connection."""
    size, connections = 50_000, 3
    decoded: list[int] = []
    decode = HttpProtocol.data_received

    def counted(self: HttpProtocol, data: bytes) -> None:
        decode(self, data)
        decoded.append(self.chunks)

    async def length(request: Request) -> Response:
        return Response(200, [], b"%d" % len(await request.body.read(1 << 20)))

    monkeypatch.setattr(HttpProtocol, "data_received", counted)
    server = await serve(length)
    clients = [await Client.connect(server) for _ in range(connections)]
    for client in clients:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head + b"1\r\na\r\n" * size + b"0\r\n\r\n" + _HEAD % (b"", b"Content-Length: 0\r\n"))
    for client in clients:
        assert (await client.answer())[::2] == (200, b"%d" % size)
        assert (await client.answer())[::2] == (200, b"0")
        await client.close()
    assert sum(decoded) == connections * size
    assert max(decoded) <= 2 * MOST_CHUNKS
    assert not server.state.parsing


async def test_a_client_that_closes_its_side_after_many_chunks_gets_the_response(serve: Serve) -> None:
    size = 43_000

    async def length(request: Request) -> Response:
        return Response(200, [], b"%d" % len(await request.body.read(1 << 20)))

    server = await serve(length)
    for _ in range(8):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * size)
        await writer.drain()
        writer.write(b"0\r\n\r\n")
        writer.write_eof()
        assert (await reader.read()).endswith(b"\r\n\r\n%d" % size)
        writer.close()
