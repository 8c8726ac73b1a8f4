"""Requests of one connection with the same headers share them, and are handled like all others."""

from __future__ import annotations

import pytest

from integration.http.h2.conftest import Connect, Serve2
from tetrapod.generic.http.request import Request, Response

MORE = (("user-agent", "test"), ("cookie", "a=1"), ("cookie", "b=2"))


async def described(request: Request) -> Response:
    body = await request.body.read(1 << 20)
    lines = [str(request.head is not None), request.method, request.path, request.query_string, body.decode()]
    return Response(200, [], "\n".join([*lines, *(f"{name!r}={value!r}" for name, value in request.headers)]).encode())


async def test_repeated_headers_give_the_same_request(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(described))
    first = (await client.get("/a?b", *MORE)).body.decode().split("\n")
    second = (await client.get("/%41?c", *MORE)).body.decode().split("\n")
    assert (first[0], second[0]) == ("False", "True")
    assert second[1:5] == ["GET", "/A", "c", ""]
    assert second[5:] == first[5:]
    changed = (await client.get("/a", ("user-agent", "other"))).body.decode().split("\n")
    assert (changed[0], changed[-1]) == ("False", "b'user-agent'=b'other'")
    fewer = (await client.get("/a")).body.decode().split("\n")
    assert (fewer[0], len(fewer)) == ("False", 6)


async def test_requests_with_a_body_or_an_audit_id_do_not_share_headers(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(described))
    for _ in range(2):
        await client.get("/", *MORE)
        posted = await client.answer(client.request("/", *MORE, method="POST", body=b"abc"))
        lines = posted.body.decode().split("\n")
        assert (lines[0], lines[4], lines[-1]) == ("False", "abc", "b'transfer-encoding'=b'chunked'")
        for _ in range(2):
            audited = (await client.get("/", ("audit-id", "a"))).body.decode().split("\n")
            assert (audited[0], audited[-1]) == ("False", "b'audit-id'=b'a'")


@pytest.mark.parametrize(
    "pseudo",
    [
        [(":method", "GET"), (":scheme", "https"), (":authority", "other"), (":path", "/")],
        [(":method", "GET"), (":scheme", "https"), (":path", "/")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "x")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/%zz")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/" + "x" * 20_000)],
        [(":method", "GET"), (":authority", "localhost"), (":path", "/")],
        [(":method", "GET"), (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/")],
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/"), (":other", "x")],
        [(":method", "CONNECT"), (":authority", "localhost")],
    ],
)
async def test_other_pseudo_headers_are_handled_as_in_a_first_request(
    serve2: Serve2, connect: Connect, pseudo: list[tuple[str, str]]
) -> None:
    server = await serve2(described)
    answers = []
    for repeated in (False, True):
        client = await connect(server)
        if repeated:
            await client.get("/", *MORE)
        stream = client.headers([*pseudo, *MORE])
        answer = await client.answer(stream)
        answers.append((answer.headers.get(":status"), answer.reset, answer.body.partition(b"\n")[2]))
        await client.close()
    assert answers[0] == answers[1]
