"""The request that a handler receives, and requests that are rejected before they reach a handler."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from integration.http.conftest import Client, Serve, client_context
from tetrapod.generic.certificates import Pki
from tetrapod.generic.http.request import ClientGone, Request, Response
from tetrapod.generic.http.tls import ServingTLS


async def echo(request: Request) -> Response:
    body = await request.body.read(1 << 20)
    described = {
        "method": request.method,
        "path": request.path,
        "raw": request.raw_path,
        "query": request.query_string,
        "headers": [[k.decode(), v.decode()] for k, v in request.headers],
        "body": body.decode(),
        "version": request.http_version,
        "remote": request.remote,
    }
    return Response(200, [(b"content-type", b"application/json")], orjson.dumps(described))


async def ask(serve: Serve, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    client = await Client.connect(await serve(echo))
    client.send(raw)
    try:
        return await client.answer()
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/api/v1/%61%2Fb%20c?x=1&y=%20", "/api/v1/a/b c", "x=1&y=%20"),
        ("https:///apis/apps", "/apis/apps", ""),
        ("http://elsewhere.example:99/nope?q", "/nope", "q"),
        ("http://elsewhere.example", "/", ""),
        ("*", "*", ""),
        ("/a/../b/./c", "/a/../b/./c", ""),
        ("/%C3%A9", "/é", ""),
        ("/a+b", "/a+b", ""),
    ],
)
async def test_targets_are_decoded_and_never_resolved(serve: Serve, target: str, path: str, query: str) -> None:
    _, _, body = await ask(serve, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    found = orjson.loads(body)
    assert (found["path"], found["query"]) == (path, query)


async def test_space_around_a_value_is_no_part_of_it(serve: Serve) -> None:
    _, _, body = await ask(serve, b"GET / HTTP/1.1\r\nHost: x\r\nA: \t b c \t \r\nD: \t\r\n\r\n")
    assert orjson.loads(body)["headers"][1:] == [["a", "b c"], ["d", ""]]


async def test_targets_beyond_ascii_are_taken_as_if_they_were_encoded(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    for _ in range(2):
        client.send("GET /a/é?x=ü HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        received = orjson.loads((await client.answer())[2])
        assert (received["path"], received["raw"], received["query"]) == ("/a/é", "/a/%C3%A9", "x=%C3%BC")
    await client.close()
    for rejected in (b"GET a/\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /\x01\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n"):
        client = await Client.connect(await serve(echo))
        client.send(rejected)
        assert (await client.answer())[0] == 400
        await client.close()


@pytest.mark.parametrize("method", ["BREW", "get", "LIST", "PROPFIND", "CONNECT", "TRACE"])
async def test_any_token_is_a_method(serve: Serve, method: str) -> None:
    client = await Client.connect(await serve(echo))
    for _ in range(2):
        client.send(f"{method} /x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert orjson.loads((await client.answer())[2])["method"] == method
    await client.close()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("GET apis HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET *?x=y HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET /  HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("BREW  / HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET  /é HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400 Bad Request: malformed Host header"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request: missing required Host header"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 Bad Request"),
        ("nonsense\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n", "400 Bad Request"),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: x\r\nBad Name: 1\r\n\r\n", "400 Bad Request"),
    ],
)
async def test_malformed_requests_get_a_text_400(serve: Serve, raw: str, text: str) -> None:
    status, headers, body = await ask(serve, raw.encode())
    assert (status, body.decode(), headers["connection"]) == (400, text, "close")


@pytest.mark.parametrize(
    ("head", "status", "text"),
    [
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked", 501, "Unsupported transfer encoding"),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked", 501, "Unsupported transfer encoding"),
        ("GET / HTTP/2.0\r\nHost: x", 505, "505 HTTP Version Not Supported: unsupported protocol version"),
    ],
)
async def test_unsupported_protocols_are_rejected_by_name(serve: Serve, head: str, status: int, text: str) -> None:
    found, headers, body = await ask(serve, f"{head}\r\n\r\n".encode())
    assert (found, body.decode(), headers["connection"]) == (status, text, "close")


async def test_an_expectation_that_is_not_met_gets_an_answer_with_its_headers(serve: Serve) -> None:
    status, headers, body = await ask(serve, b"GET / HTTP/1.1\r\nHost: x\r\nExpect: odd\r\n\r\n")
    assert (status, body, headers["connection"], headers["content-length"]) == (417, b"", "close", "0")
    assert "date" in headers
    assert "content-type" not in headers


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ("-1\r\n", "invalid byte in chunk length"),
        ("0x1\r\n", "invalid byte in chunk length"),
        ("2\r\nabXX", "malformed chunked encoding"),
        ("zz\r\n", "invalid byte in chunk length"),
        ("f" * 17 + "\r\n", "http chunk length too large"),
    ],
)
async def test_a_body_that_is_invalid_is_a_500_and_closes(serve: Serve, chunks: str, text: str) -> None:
    client = await Client.connect(await serve(echo))
    client.send(
        (
            f"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}\r\n\r\nGET /next HTTP/1.1\r\n"
            "Host: x\r\n\r\n"
        ).encode()
    )
    status, _, body = await client.answer()
    assert (status, orjson.loads(body)["message"]) == (500, text)
    assert await client.reader.read() == b""
    await client.close()


async def test_a_head_without_end_is_rejected(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ")
    client.send(b"a" * (2 << 20))
    status, _, _ = await client.answer()
    assert status == 431
    await client.close()


@pytest.mark.parametrize(
    "around", [b"3;x=%b\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\nX: %b\r\n\r\n"], ids=["extension", "trailer"]
)
async def test_trailers_and_extensions_of_chunks_are_limited(serve: Serve, around: bytes) -> None:
    """The parser buffers a trailer until it is complete.

    Without a limit one client could fill the memory and block the loop by copying.
    """
    client = await Client.connect(await serve(echo))
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + around % (b"a" * (2 << 20)))
    status, headers, body = await client.answer()
    assert (status, orjson.loads(body)["message"]) == (500, "malformed chunked encoding")
    assert headers["connection"] == "close"
    await client.close()


async def test_options_of_the_server_itself(serve: Serve) -> None:
    status, headers, body = await ask(serve, b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (status, headers["content-length"], body) == (200, "0", b"")


async def test_bodies_with_a_length_in_chunks_and_after_100_continue(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
    client.send(b"cde")
    assert orjson.loads((await client.answer())[2])["body"] == "abcde"
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n")
    found = orjson.loads((await client.answer())[2])
    assert found["body"] == "abc"
    assert "trailer" not in dict(found["headers"])
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await client.head() == (100, {})
    client.send(b"ok")
    assert orjson.loads((await client.answer())[2])["body"] == "ok"
    await client.close()


async def test_spaces_are_counted_in_request_lines_only(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    header = "Host: x\r\nA:  b  c\r\n"
    for line, count in (("GET / HTTP/1.1", 2), ("BREW /?a=b HTTP/1.1", 1), ("GET /é HTTP/1.1", 1)):
        client.send(f"{line}\r\n{header}\r\n".encode() * count)
        for _ in range(count):
            assert ["a", "b  c"] in orjson.loads((await client.answer())[2])["headers"]
    client.send(f"POST / HTTP/1.1\r\n{header}Content-Length: 6\r\n\r\na  b  GET / HTTP/1.1\r\n{header}\r\n".encode())
    assert orjson.loads((await client.answer())[2])["body"] == "a  b  "
    assert (await client.answer())[0] == 200
    await client.close()


@pytest.mark.parametrize("framing", ["Content-Length: 2", "Transfer-Encoding: chunked"])
async def test_an_expected_100_continue_is_sent_even_if_the_body_has_arrived(serve: Serve, framing: str) -> None:
    body = "ok" if "Length" in framing else "2\r\nok\r\n0\r\n\r\n"
    client = await Client.connect(await serve(echo))
    for _ in range(2):
        client.send(f"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{framing}\r\n\r\n{body}".encode())
        assert await client.head() == (100, {})
        status, headers, answer = await client.answer()
        assert (status, "connection" in headers, orjson.loads(answer)["body"]) == (200, False, "ok")
    await client.close()


async def test_a_body_after_an_expectation_that_is_not_read_closes_the_connection(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        return Response(404, [])

    head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    client = await Client.connect(await serve(handler))
    for framing in ("", "Content-Length: 0\r\n"):  # no body
        client.send(f"{head}{framing}\r\n".encode())
        status, headers, _ = await client.answer()
        assert (status, "connection" in headers) == (404, False)
    client.send(f"{head}Content-Length: 2\r\n\r\nok".encode())
    status, headers, _ = await client.answer()
    assert (status, headers["connection"]) == (404, "close")
    assert await client.reader.read() == b""
    await client.close()


@pytest.mark.parametrize("framing", ["Content-Length: 2000000", "Transfer-Encoding: chunked"])
async def test_a_body_over_the_limit_is_413_and_closes(serve: Serve, framing: str) -> None:
    client = await Client.connect(await serve(echo))
    client.send(f"POST / HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n".encode())
    body = b"a" * 2_000_000
    client.send(body if "Length" in framing else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    status, headers, answer = await client.answer()
    assert (status, headers["connection"]) == (413, "close")
    assert orjson.loads(answer)["message"] == "Request entity too large: limit is 1048576"
    await client.close()


async def test_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(20)))
    for n in range(20):
        assert orjson.loads((await client.answer())[2])["path"] == f"/{n}"
    await client.close()


async def test_an_unsupported_upgrade_gets_a_normal_response(serve: Serve) -> None:
    client = await Client.connect(await serve(echo))
    upgrade = "Connection: Upgrade\r\nUpgrade: h2c\r\n"
    client.get("/first", upgrade)
    client.get("/second")
    assert orjson.loads((await client.answer())[2])["path"] == "/first"
    assert orjson.loads((await client.answer())[2])["path"] == "/second"
    client.send(f"POST /third HTTP/1.1\r\nHost: x\r\n{upgrade}Content-Length: 4\r\n\r\nbody".encode())
    assert orjson.loads((await client.answer())[2])["body"] == "body"
    client.get("/fourth")
    assert orjson.loads((await client.answer())[2])["path"] == "/fourth"
    await client.close()


async def test_http_1_0_closes_after_its_answer(serve: Serve) -> None:
    status, headers, _ = await ask(serve, b"GET / HTTP/1.0\r\n\r\n")
    assert (status, headers["connection"]) == (200, "close")


async def test_the_reader_of_a_body_is_notified_of_a_disconnected_client(serve: Serve) -> None:
    notified = asyncio.Event()

    async def handler(request: Request) -> Response:
        try:
            await request.body.read(100)
        except ClientGone:
            notified.set()
            raise
        raise AssertionError

    client = await Client.connect(await serve(handler))
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
    await asyncio.sleep(0)
    await client.close()
    await asyncio.wait_for(notified.wait(), 5)


async def test_reads_are_cancelled_when_the_client_goes_and_writes_are_not(serve: Serve) -> None:
    begun, cancelled, notified = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        begun.set()
        try:
            await request.disconnected()
            notified.set()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200, [])

    server = await serve(handler)
    for method, expected in (("GET", cancelled), ("POST", notified)):
        begun.clear()
        client = await Client.connect(server)
        client.send(f"{method} / HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await asyncio.wait_for(begun.wait(), 5)
        await client.close()
        await asyncio.wait_for(expected.wait(), 5)
    assert cancelled.is_set()


async def test_the_certificate_of_the_client_reaches_the_handler(serve: Serve, pki: Pki, tls: ServingTLS) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"".join(request.peer_certificates[:1]) or b"none")

    server = await serve(handler, tls)
    for pair in (None, pki.admin, pki.front_proxy_client):
        client = await Client.connect(server, client_context(pki, pair))
        client.get()
        _, _, body = await client.answer()
        await client.close()
        if pair is None:
            assert body == b"none"
        else:
            from cryptography import x509
            from cryptography.hazmat.primitives.serialization import Encoding

            assert body == x509.load_pem_x509_certificate(pair[0].read_bytes()).public_bytes(Encoding.DER)


async def test_plain_http_to_the_tls_port_is_reported_so(serve: Serve, pki: Pki, tls: ServingTLS) -> None:
    server = await serve(echo, tls)
    client = await Client.connect(server)
    client.get("/readyz")
    status, headers, body = await client.answer()
    assert (status, headers["connection"]) == (400, "close")
    assert body == b"Client sent an HTTP request to an HTTPS server.\n"
    await client.close()
    again = await Client.connect(server, client_context(pki))
    again.get("/")
    assert (await again.answer())[0] == 200
    await again.close()
