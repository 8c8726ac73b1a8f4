"""Tests of a server's client of itself: its requests can be proxied, and streamed responses may arrive in any
pieces.
"""

from __future__ import annotations

from tetrapod.generic.client.inprocess import InProcessTransport
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter


async def test_a_body_has_a_length() -> None:
    async def echo(request: Request) -> Response:
        lengths = [value for name, value in request.headers if name == b"content-length"]
        return Response(200, [], b",".join(lengths) + b" " + await request.body.read(100))

    transport = InProcessTransport(echo)
    assert await transport.send("POST", "/x", b"body", {}) == (200, b"4 body")
    assert await transport.send("GET", "/x", b"", {}) == (200, b" ")


async def test_lines_are_put_together() -> None:
    async def watch(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            for piece in (b'{"a":', b'1}\n{"b"', b":2}\n", b'{"c":3}\n{"d":4}\n'):
                writer.write(piece)
                await writer.drain()

        return StreamResponse(200, [], run)

    assert [line async for line in InProcessTransport(watch).stream("/x", {})] == [
        b'{"a":1}',
        b'{"b":2}',
        b'{"c":3}',
        b'{"d":4}',
    ]


async def test_empty_lines_are_left_out() -> None:
    async def answer(request: Request) -> Response:
        return Response(200, [], b'{"a":1}\n\n{"b":2}\n')

    async def watch(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            writer.write(b'{"a":1}\n\n{"b":2}\n')

        return StreamResponse(200, [], run)

    for handler in (answer, watch):
        assert [line async for line in InProcessTransport(handler).stream("/x", {})] == [b'{"a":1}', b'{"b":2}']
