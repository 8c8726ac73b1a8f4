"""Tests of the ASGI application of an aggregated server, by the messages of the ASGI protocol."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from tetrapod.generic.aggregated.asgi import HIGH_WATER, AsgiApplication
from tetrapod.generic.http.request import AnswerBroken, Handler, Request, Response, StreamResponse, StreamWriter

BODY = {"type": "http.request", "body": b"abc", "more_body": True}
END = {"type": "http.request", "body": b"de"}
DISCONNECT = {"type": "http.disconnect"}


class Connection:
    """The side of the ASGI server: the messages that the application receives, and those that it has sent."""

    def __init__(self, *received: dict[str, Any]) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in received:
            self.incoming.put_nowait(message)
        self.sent: list[MutableMapping[str, Any]] = []
        self.progress = asyncio.Event()
        self.sending = asyncio.Event()
        self.sending.set()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.sending.wait()
        self.sent.append(message)
        self.progress.set()

    async def run(self, handler: Handler | None, **scope: Any) -> None:
        application = AsgiApplication()
        if handler is not None:
            application.open(handler)
        full = {"type": "http", "method": "GET", "path": "/a b", "raw_path": b"/a%20b", "query_string": b"x=1"}
        await application({**full, "headers": [(b"A", b"1")], **scope}, self.incoming.get, self.send)

    async def sent_any(self, body: bytes = b"") -> None:
        """Wait until a message was sent, and the bodies of all messages are `body`."""
        while not self.sent or self.body != body:
            self.progress.clear()
            await self.progress.wait()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def test_the_request_has_the_parts_of_the_scope_and_the_body() -> None:
    async def handler(request: Request) -> Response:
        body = await request.body.read(100)
        seen = (request.method, request.path, request.raw_path, request.query_string, request.headers, body)
        assert seen == ("POST", "/a b", "/a%20b", "x=1", [(b"a", b"1")], b"abcde")
        assert request.peer_certificates == ()
        return Response(201, [(b"content-type", b"text/plain")], b"done")

    connection = Connection(BODY, END)
    await connection.run(handler, method="POST")
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"4")]
    assert connection.sent == [
        {"type": "http.response.start", "status": 201, "headers": headers},
        {"type": "http.response.body", "body": b"done"},
    ]


async def test_a_body_over_the_limit_is_rejected() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], await request.body.read(4))

    connection = Connection(BODY, END)
    await connection.run(handler)
    assert (connection.sent[0]["status"], b"limit is 4" in connection.body) == (413, True)


async def test_a_request_before_the_start_gets_a_503() -> None:
    connection = Connection()
    await connection.run(None)
    assert connection.sent[0]["status"] == 503


async def test_an_exception_becomes_a_500() -> None:
    async def handler(_: Request) -> Response:
        raise RuntimeError("a fault")

    connection = Connection()
    await connection.run(handler)
    assert (connection.sent[0]["status"], b"a fault" in connection.body) == (500, False)


async def test_a_stream_is_sent_as_it_is_written_and_ends_when_the_client_disconnects() -> None:
    cancelled = asyncio.Event()

    async def watch(writer: StreamWriter) -> None:
        writer.write(b"first\n")
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def handler(_: Request) -> Response:
        return StreamResponse(200, [], watch, endless=True)

    connection = Connection(END)
    running = asyncio.create_task(connection.run(handler))
    await connection.sent_any(b"first\n")
    connection.incoming.put_nowait(DISCONNECT)
    await running
    assert cancelled.is_set()


async def test_a_stream_waits_for_a_slow_client() -> None:
    written = 0

    async def produce(writer: StreamWriter) -> None:
        nonlocal written
        for _ in range(10):
            writer.write(b"x" * HIGH_WATER)
            written += 1
            await writer.drain()

    async def handler(_: Request) -> Response:
        return StreamResponse(200, [], produce)

    connection = Connection(END)
    running = asyncio.create_task(connection.run(handler))
    await connection.sent_any()
    connection.sending.clear()
    for _ in range(50):
        await asyncio.sleep(0)
    assert written <= 2
    connection.sending.set()
    await running
    assert len(connection.body) == 10 * HIGH_WATER
    assert connection.sent[-1] == {"type": "http.response.body", "body": b""}


async def test_a_stream_that_fails_is_not_ended_properly() -> None:
    async def produce(writer: StreamWriter) -> None:
        writer.write(b"half")
        raise RuntimeError("a fault")

    async def handler(_: Request) -> Response:
        return StreamResponse(200, [], produce)

    connection = Connection(END)
    with pytest.raises(AnswerBroken):
        await connection.run(handler)
    assert connection.sent[-1] == {"type": "http.response.body", "body": b"half", "more_body": True}


async def test_an_unverified_certificate_is_not_passed_on() -> None:
    async def handler(request: Request) -> Response:
        assert request.peer_certificates == ()
        return Response(200, [], request.certificate_error.encode())

    connection = Connection()
    tls = {"client_cert_chain": ["not parsed"], "client_cert_error": "x509: unknown authority"}
    await connection.run(handler, extensions={"tls": tls})
    assert connection.body == b"x509: unknown authority"


async def test_websockets_are_rejected_and_the_lifespan_is_acknowledged() -> None:
    socket = Connection({"type": "websocket.connect"})
    await socket.run(None, type="websocket")
    lifespan = Connection({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    await lifespan.run(None, type="lifespan")
    assert [message["type"] for message in (*socket.sent, *lifespan.sent)] == [
        "websocket.close",
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
