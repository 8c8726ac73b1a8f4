"""Requests whose head the server has read before: they are recognized by its bytes, and handled like all others."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from integration.http.conftest import Client, Serve
from integration.http.test_requests import echo
from tetrapod.generic.http import known_heads
from tetrapod.generic.http.request import Request, Response

HEAD = "Host: x\r\nAccept: application/json\r\nX-Remote-User: a\r\n"
TOKEN = "Host: x\r\nAuthorization: Bearer a\r\n"
AUDIT_ID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture(autouse=True)
def no_heads() -> None:
    known_heads._heads.clear()


async def described(request: Request) -> Response:
    response = await echo(request)
    more = {"known": request.head is not None, "audit": request.audit_id}
    return Response(200, response.headers, orjson.dumps({**orjson.loads(response.body), **more}))


async def ask(client: Client, raw: str) -> Any:
    client.send(raw.encode())
    status, _, body = await client.answer()
    assert status == 200
    return orjson.loads(body)


def without(received: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in received.items() if key not in keys}


@pytest.mark.parametrize("head", [HEAD, TOKEN])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_repeated_head_gives_the_same_request(serve: Serve, head: str, method: str) -> None:
    client = await Client.connect(await serve(described))
    first, second = [await ask(client, f"{method} /a?b=c HTTP/1.1\r\n{head}\r\n") for _ in range(2)]
    assert (first["known"], second["known"]) == (False, True)
    assert without(first, "known") == without(second, "known")
    other = await ask(client, f"{method} /%41?d HTTP/1.1\r\n{head}\r\n")
    assert (other["known"], other["path"], other["raw"], other["query"]) == (True, "/A", "/%41", "d")
    assert other["headers"] == first["headers"]
    await client.close()


async def test_the_head_method_has_no_body_when_its_head_is_known(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n")
    client.send(f"HEAD / HTTP/1.1\r\n{HEAD}\r\nGET / HTTP/1.1\r\n{HEAD}\r\n".encode())
    client.send(f"HEAD / HTTP/1.1\r\n{HEAD}\r\n".encode())
    assert (await client.answer(body=False))[0] == 200
    assert (await client.answer())[0] == 200
    assert (await client.answer(body=False))[0] == 200
    await client.close()


async def test_heads_with_another_audit_id_are_the_same(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    first = await ask(client, f"GET / HTTP/1.1\r\n{HEAD}audit-id: {AUDIT_ID}\r\n\r\n")
    assert first["headers"][-1] == ["audit-id", AUDIT_ID]
    second = await ask(client, f"GET / HTTP/1.1\r\n{HEAD}audit-id: another-1\r\n\r\n")
    assert (second["known"], second["audit"]) == (True, "another-1")
    assert second["headers"] == first["headers"][:-1]
    third = await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n")
    assert (third["known"], third["audit"], third["headers"]) == (True, "", second["headers"])
    for unusual in ("audit-id: a b\r\n", "audit-id: a\r\naudit-id: b\r\n", "Audit-Id: a\r\n"):
        for _ in range(2):
            received = await ask(client, f"GET / HTTP/1.1\r\n{HEAD}{unusual}\r\n")
            assert not received["known"]
            assert received["headers"][-1][0] == "audit-id"
    await client.close()


@pytest.mark.parametrize(
    "head",
    [
        "Connection: keep-alive, x\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
        "Content-Length: 0\r\n",
        "TE: trailers\r\n",
        "Expect: 100-continue\r\n",
    ],
)
async def test_heads_that_determine_the_framing_are_parsed(serve: Serve, head: str) -> None:
    client = await Client.connect(await serve(described))
    for _ in range(3):
        client.send(f"GET / HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        status, _, body = await client.answer()
        if status == 100:
            status, _, body = await client.answer()
        assert not orjson.loads(body)["known"]
        if "100" in head:  # as with Go, the connection closes
            break
    await client.close()


async def test_bodies_are_never_taken_for_heads(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n")
    smuggled = f"GET /smuggled HTTP/1.1\r\n{HEAD}\r\n"
    client.send(f"POST /outer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(smuggled)}\r\n\r\n".encode())
    await asyncio.sleep(0.05)
    received = await ask(client, smuggled)
    assert (received["path"], received["body"]) == ("/outer", smuggled)
    assert (await ask(client, f"GET /next HTTP/1.1\r\n{HEAD}\r\n"))["path"] == "/next"
    await client.close()


async def test_known_heads_in_pieces_and_in_pipelines_are_parsed(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    request = f"GET /p HTTP/1.1\r\n{HEAD}\r\n"
    await ask(client, request)
    client.send(request[:20].encode())
    await asyncio.sleep(0.05)
    assert not (await ask(client, request[20:]))["known"]
    client.send(request.encode() * 3)
    paths = [orjson.loads((await client.answer())[2])["path"] for _ in range(3)]
    assert paths == ["/p", "/p", "/p"]
    assert (await ask(client, request))["known"]
    await client.close()


@pytest.mark.parametrize(
    "line", ["GET /%zz HTTP/1.1", "GET  / HTTP/1.1", "GET x HTTP/1.1", "GET / HTTP/2.0", "GET / HTTP/1.1 "]
)
async def test_a_malformed_request_line_is_rejected_although_the_head_is_known(serve: Serve, line: str) -> None:
    server = await serve(described)
    answers = []
    for known in (False, True):
        client = await Client.connect(server)
        if known:
            await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n")
        client.send(f"{line}\r\n{HEAD}\r\n".encode())
        answers.append(await client.answer())
        await client.close()
    assert answers[0][0] >= 400
    assert answers[0] == answers[1]


async def test_an_older_version_with_a_known_head_closes_the_connection(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n")
    client.send(f"GET / HTTP/1.0\r\n{HEAD}\r\n".encode())
    _, headers, body = await client.answer()
    assert (headers["connection"], orjson.loads(body)["version"]) == ("close", "1.0")
    await client.close()


async def test_heads_with_credentials_are_known_to_their_connection_alone(serve: Serve) -> None:
    server = await serve(described)
    client, other = await Client.connect(server), await Client.connect(server)
    assert not (await ask(client, f"GET / HTTP/1.1\r\n{TOKEN}\r\n"))["known"]
    assert not (await ask(other, f"GET / HTTP/1.1\r\n{TOKEN}\r\n"))["known"]
    assert not (await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n"))["known"]
    assert (await ask(other, f"GET / HTTP/1.1\r\n{HEAD}\r\n"))["known"]
    assert not known_heads._heads.keys() & {TOKEN.removesuffix("\r\n").encode()}
    await client.close()
    await other.close()


async def test_long_heads_are_not_kept(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    for _ in range(2):
        assert not (await ask(client, f"GET / HTTP/1.1\r\nHost: x\r\nA: {'a' * 5000}\r\n\r\n"))["known"]
    await client.close()


async def test_heads_that_are_always_different_are_not_looked_for(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    for number in range(8):
        assert not (await ask(client, f"GET / HTTP/1.1\r\nHost: x\r\nA: {number}\r\n\r\n"))["known"]
    known = [(await ask(client, f"GET / HTTP/1.1\r\n{HEAD}\r\n"))["known"] for _ in range(80)]
    assert known == 64 * [False] + 16 * [True]
    await client.close()


async def test_a_head_that_keeps_its_connection_open_is_known(serve: Serve) -> None:
    client = await Client.connect(await serve(described))
    raw = "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
    first, second = await ask(client, raw), await ask(client, raw)
    assert (first["known"], second["known"], second["headers"]) == (False, True, first["headers"])
    await client.close()
