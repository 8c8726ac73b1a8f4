"""Malformed requests over HTTP/2: none reaches a handler, and none could mean something else to an HTTP/1.1 server."""

from __future__ import annotations

import pytest

from integration.http.h2.conftest import Connect, Serve2
from support.http2_client import Fields
from tetrapod.generic.http.limits import MAX_HEAD, MAX_HEADER, MAX_HEADERS, MAX_PATH
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http2 import frames

METHOD, SCHEME, PATH, AUTHORITY = (":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "localhost")
GET = (METHOD, SCHEME, PATH, AUTHORITY)


async def handler(request: Request) -> Response:
    assert request.path in ("/", "/good"), "a malformed request has reached the handler"
    await request.body.read(1000)
    return Response(200, [], b"ok")


@pytest.mark.parametrize(
    "fields",
    [
        (METHOD, SCHEME, AUTHORITY),
        (METHOD, PATH, AUTHORITY),
        (SCHEME, PATH, AUTHORITY),
        (METHOD, SCHEME, (":path", ""), AUTHORITY),
        (METHOD, (":scheme", "ftp"), PATH, AUTHORITY),
        ((":method", "GE T"), SCHEME, PATH, AUTHORITY),
        ((":method", "GET\r\nx: y"), SCHEME, PATH, AUTHORITY),
        ((":method", ""), SCHEME, PATH, AUTHORITY),
        (*GET, METHOD),
        (*GET, AUTHORITY),
        (METHOD, SCHEME, PATH, ("x", "y"), AUTHORITY),
        (*GET, (":status", "200")),
        (*GET, (":protocol", "websocket")),
        (METHOD, SCHEME, (":path", "/\r\nHost: other"), AUTHORITY),
        (METHOD, SCHEME, PATH, (":authority", "a\r\nb: c")),
        (*GET, ("X-Upper", "y")),
        (*GET, ("x y", "z")),
        (*GET, ("x:y", "z")),
        (*GET, ("", "z")),
        (*GET, ("x\r\ny", "z")),
        (*GET, ("x", "a\r\nTransfer-Encoding: chunked")),
        (*GET, ("x", "a\nb")),
        (*GET, ("x", "a\rb")),
        (*GET, ("x", "a\0b")),
        (*GET, ("x", "a\x7fb")),
        (*GET, ("connection", "close")),
        (*GET, ("connection", "x-remote-user")),
        (*GET, ("keep-alive", "1")),
        (*GET, ("proxy-connection", "keep-alive")),
        (*GET, ("transfer-encoding", "chunked")),
        (*GET, ("upgrade", "websocket")),
        (*GET, ("te", "gzip")),
        (*GET, ("content-length", "5")),
        (*GET, ("content-length", "-1")),
        (*GET, ("content-length", "+0")),
        (*GET, ("content-length", "0x0")),
        (*GET, ("content-length", "0"), ("content-length", "1")),
        (*GET, ("content-length", "1" * 40)),
        ((":method", "CONNECT"), SCHEME, PATH, AUTHORITY),
        ((":method", "CONNECT"),),
    ],
    ids=repr,
)
async def test_a_malformed_request_resets_its_stream(serve2: Serve2, connect: Connect, fields: Fields) -> None:
    client = await connect(await serve2(handler))
    answer = await client.answer(client.headers(fields))
    assert (answer.headers, answer.reset) == ({}, frames.PROTOCOL_ERROR)
    assert (await client.get("/good")).body == b"ok"


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ((*GET, ("host", "other")), 400, "400 Bad Request: Host and :authority differ"),
        ((METHOD, SCHEME, PATH, ("host", "a"), ("host", "b")), 400, "400 Bad Request: Host and :authority differ"),
        ((METHOD, SCHEME, PATH), 400, "400 Bad Request: missing required Host header"),
        ((METHOD, SCHEME, PATH, (":authority", "a b")), 400, "400 Bad Request: malformed Host header"),
        ((METHOD, SCHEME, PATH, (":authority", "user@a")), 400, "400 Bad Request: malformed Host header"),
        ((METHOD, SCHEME, (":path", "/a b"), AUTHORITY), 400, "400 Bad Request"),
        ((METHOD, SCHEME, (":path", "/%zz"), AUTHORITY), 400, "400 Bad Request"),
        ((METHOD, SCHEME, (":path", "a"), AUTHORITY), 400, "400 Bad Request"),
        ((METHOD, SCHEME, (":path", "https://other/"), AUTHORITY), 400, "400 Bad Request"),
        (((":method", "CONNECT"), AUTHORITY), 400, "400 Bad Request"),
        ((*GET, ("expect", "magic")), 417, ""),
    ],
    ids=repr,
)
async def test_a_request_that_http_1_rejects_is_answered_in_the_same_way(
    serve2: Serve2, connect: Connect, fields: Fields, status: int, text: str
) -> None:
    client = await connect(await serve2(handler))
    answer = await client.answer(client.headers(fields))
    assert (answer.status, answer.body.decode()) == (status, text)
    headers = {"content-type": "text/plain; charset=utf-8"} if status == 400 else {}
    added = {":status": str(status), "date": answer.headers["date"], "content-length": str(len(text))}
    assert answer.headers == {**headers, **added}
    assert (await client.get("/good")).body == b"ok"


async def test_host_and_authority_may_be_the_same(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(handler))
    assert (await client.answer(client.headers((*GET, ("host", "LOCALHOST"), ("te", "trailers"))))).status == 200
    assert (await client.answer(client.headers((METHOD, SCHEME, PATH, ("host", "localhost"))))).status == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/" + "a" * MAX_PATH, [], 414),
        ("/?a=" + "a" * (256 << 10), [], 414),
        ("/", [("x", "a" * MAX_HEADER)], 431),
        ("/", [("x", "y")] * (MAX_HEADERS + 1), 431),
    ],
    ids=["path", "query", "header", "count"],
)
async def test_a_head_beyond_a_limit_is_answered(
    serve2: Serve2, connect: Connect, path: str, headers: list[tuple[str, str]], status: int
) -> None:
    client = await connect(await serve2(handler))
    answer = await client.get(path, *headers)
    assert answer.status == status
    assert b'"kind":"Status"' in answer.body
    assert (await client.get("/good")).status == 200


async def test_a_head_within_all_limits_is_served(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(handler))
    more = [(f"x-{number}", "a" * 60_000) for number in range(5)]
    assert (await client.get("/?command=" + "x" * 200_000, *more)).status == 200


async def test_a_header_list_that_is_too_long_is_answered_and_ends_the_connection(
    serve2: Serve2, connect: Connect
) -> None:
    client = await connect(await serve2(handler))
    stream = client.request("/", *((f"x-{number}", "a" * 60_000) for number in range(MAX_HEAD // 60_000 + 1)))
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    assert client.answers[stream].status == 431


@pytest.mark.parametrize(
    ("length", "pieces"),
    [(5, [b"abc"]), (5, [b"abc", b"def"]), (0, [b"a"]), (5, [])],
    ids=["short", "long", "none declared", "none sent"],
)
async def test_a_body_of_another_length_than_declared_resets_its_stream(
    serve2: Serve2, connect: Connect, length: int, pieces: list[bytes]
) -> None:
    client = await connect(await serve2(handler))
    stream = client.request("/", ("content-length", str(length)), method="POST", end=False)
    for piece in pieces:
        client.data(stream, piece)
    client.data(stream, b"", end=True)
    answer = await client.answer(stream)
    assert (answer.headers, answer.reset) == ({}, frames.PROTOCOL_ERROR)
    assert (await client.get("/good")).body == b"ok"


@pytest.mark.parametrize(
    "trailers", [[("transfer-encoding", "chunked")], [(":path", "/")], [("X", "y")], [("x", "a\r\nb")]]
)
async def test_malformed_trailers_reset_their_stream(serve2: Serve2, connect: Connect, trailers: Fields) -> None:
    client = await connect(await serve2(handler))
    stream = client.request("/", method="POST", end=False)
    client.headers(trailers, stream=stream)
    assert (await client.answer(stream)).reset == frames.PROTOCOL_ERROR


async def test_trailers_end_a_body(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(handler))
    stream = client.request("/", ("content-length", "3"), method="POST", end=False)
    client.data(stream, b"abc")
    client.headers([("x-sum", "3")], stream=stream)
    assert (await client.answer(stream)).status == 200
