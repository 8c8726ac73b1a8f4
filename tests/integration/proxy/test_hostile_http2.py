"""HTTP/2 backends that violate the protocol, and messages that would mean something else in the other HTTP version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from integration.http.conftest import Serve
from integration.proxy.conftest import Context, watching_client
from support.http2_backend import OK, Http2Backend, Http2Peer
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.header_encoding import literal
from tetrapod.generic.proxy import BackendError, BackendPool
from tetrapod.generic.proxy.h2.connection import Http2Connection
from tetrapod.generic.proxy.h2.exchange import STREAM_WINDOW

Behaviour = Callable[[Http2Peer, int], None]


def raw(*fields: tuple[bytes, bytes], flags: int = frames.END_HEADERS) -> Behaviour:
    """Send a header block that no encoder permits."""
    block = b"".join(literal(name, value) for name, value in fields)
    return lambda peer, stream: peer.send(frames.frame(frames.HEADERS, flags, stream, block))


def then(*steps: Behaviour) -> Behaviour:
    def run(peer: Http2Peer, stream: int) -> None:
        for step in steps:
            step(peer, stream)

    return run


def data(body: bytes, *, end: bool = False) -> Behaviour:
    return lambda peer, stream: peer.data(stream, body, end=end)


def head(*fields: tuple[str, str]) -> Behaviour:
    return lambda peer, stream: peer.headers(stream, [*OK, *fields])


def send(frame: bytes) -> Behaviour:
    return lambda peer, stream: peer.send(frame)


OK_FIELD = (b":status", b"200")
STREAM_ERRORS = {
    "no status": (raw((b"x-a", b"1")), "missing status pseudo header"),
    "a malformed status": (raw((b":status", b"2000")), "malformed non-numeric status"),
    "a status of text": (raw((b":status", b"abc")), "malformed non-numeric status"),
    "a status beyond 599": (raw((b":status", b"999")), "malformed non-numeric status"),
    "two statuses": (raw(OK_FIELD, OK_FIELD), 'invalid header field name ":status"'),
    "an upper-case name": (raw(OK_FIELD, (b"X-A", b"1")), 'invalid header field name "X-A"'),
    "a name with a line break": (raw(OK_FIELD, (b"x\r\nx-remote-user", b"1")), "invalid header field name"),
    "a name with a colon": (raw(OK_FIELD, (b"x: y", b"1")), "invalid header field name"),
    "a value with a line break": (raw(OK_FIELD, (b"x-a", b"1\r\nset-cookie: a=b")), 'field value for "x-a"'),
    "a value with a NUL": (raw(OK_FIELD, (b"x-a", b"1\x00")), 'field value for "x-a"'),
    "different lengths": (head(("content-length", "1"), ("content-length", "2")), "invalid Content-Length"),
    "a negative length": (head(("content-length", "-1")), "invalid Content-Length"),
    "data before the head": (data(b"x"), "received DATA before a HEADERS frame"),
    "endless informational responses": (
        then(*[raw((b":status", b"103"))] * 7),
        "too many 1xx informational responses",
    ),
}
BROKEN_BODIES = {
    "more than its length": (then(head(("content-length", "2")), data(b"abc")), "more than declared Content-Length"),
    "less than its length": (then(head(("content-length", "2")), data(b"a", end=True)), "unexpected EOF"),
    "trailers that go on": (then(head(), head()), "trailers without END_STREAM"),
    "trailers with a status": (then(head(), raw(OK_FIELD, flags=5)), "invalid header field name"),
    "a reset": (then(head(), lambda peer, stream: peer.send(frames.reset(stream, 2))), "INTERNAL_ERROR; received from"),
}
CONNECTION_ERRORS = {
    "a window without size": send(frames.window_update(0, 0)),
    "a window that overflows": send(frames.window_update(0, frames.LARGEST_WINDOW)),
    "a push": send(frames.frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, b"\0\0\0\2")),
    "a frame beyond the maximum": send(frames.head(frames.DATA, 0, 1, frames.DEFAULT_FRAME + 1)),
    "an interrupted header block": then(raw(OK_FIELD, flags=0), data(b"x")),
    "endless continuations": then(
        raw(OK_FIELD, flags=0), *[lambda peer, stream: peer.send(frames.frame(frames.CONTINUATION, 0, stream))] * 1000
    ),
    "an index outside the table": send(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\x7f")),
    "settings of the wrong size": send(frames.frame(frames.SETTINGS, 0, 0, b"12345")),
    "padding beyond the frame": send(frames.frame(frames.DATA, frames.PADDED, 1, b"\xffx")),
}


def behaving(behaviour: Behaviour) -> Callable[[Http2Peer], Awaitable[None]]:
    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        while True:
            stream, fields = await peer.request()
            if dict(fields)[":path"] == "/well":
                peer.answer(stream, b"well")
            else:
                behaviour(peer, stream)

    return serve


@pytest.mark.parametrize("case", STREAM_ERRORS)
async def test_a_malformed_response_fails_its_stream_and_no_other(
    context: Context, pool: BackendPool, case: str
) -> None:
    behaviour, text = STREAM_ERRORS[case]
    async with Http2Backend(behaving(behaviour), context()) as backend:
        with pytest.raises(BackendError, match="stream error: stream ID 1; PROTOCOL_ERROR") as raised:
            await pool.exchange(backend.endpoint, "POST", "/bad", [], shared=True)
        assert text in str(raised.value)
        well = await pool.exchange(backend.endpoint, "GET", "/well", [], shared=True)
        assert await well.read() == b"well"
        assert backend.connections == 1


@pytest.mark.parametrize("case", BROKEN_BODIES)
async def test_a_broken_body_is_an_error_and_never_a_short_response(
    context: Context, pool: BackendPool, case: str
) -> None:
    behaviour, text = BROKEN_BODIES[case]
    async with Http2Backend(behaving(behaviour), context()) as backend:
        with pytest.raises(BackendError) as raised:
            await (await pool.exchange(backend.endpoint, "POST", "/bad", [], shared=True)).read()
        assert text in str(raised.value)
        well = await pool.exchange(backend.endpoint, "GET", "/well", [], shared=True)
        assert await well.read() == b"well"
        assert backend.connections == 1


@pytest.mark.parametrize("case", CONNECTION_ERRORS)
async def test_a_violation_ends_the_connection_and_the_next_request_makes_another(
    context: Context, pool: BackendPool, case: str
) -> None:
    async with Http2Backend(behaving(CONNECTION_ERRORS[case]), context()) as backend:
        with pytest.raises(BackendError, match="connection error: "):
            await pool.exchange(backend.endpoint, "POST", "/bad", [], shared=True)
        well = await pool.exchange(backend.endpoint, "GET", "/well", [], shared=True)
        assert await well.read() == b"well"
        assert backend.connections == 2


async def test_a_backend_that_ignores_the_window_is_reset(context: Context, pool: BackendPool) -> None:
    behaviour = then(head(), *[data(b"x" * 16384)] * (2 * STREAM_WINDOW // 16384))
    async with Http2Backend(behaving(behaviour), context()) as backend:
        exchange = await pool.exchange(backend.endpoint, "GET", "/bad", [], shared=True)
        with pytest.raises(BackendError, match="FLOW_CONTROL_ERROR"):
            while True:
                await asyncio.sleep(0.05)
                await exchange.chunk()


class UnreadTransport(asyncio.Transport):
    """A transport whose peer reads nothing. It pauses its protocol as asyncio's do."""

    def __init__(self, connection: Http2Connection) -> None:
        super().__init__()
        self.connection, self.unread, self.closed = connection, 0, False

    def write(self, data: object) -> None:
        self.unread += len(bytes(data))  # type: ignore[call-overload]
        if self.unread > 64 << 10:
            self.connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("flood", [frames.frame(frames.PING, 0, 0, b"12345678"), frames.settings({})])
async def test_a_backend_that_does_not_read_the_replies_to_its_frames_is_left(flood: bytes) -> None:
    connection = Http2Connection(lambda _: None)
    transport = UnreadTransport(connection)
    connection.connection_made(transport)
    connection.data_received(frames.settings({}))
    exchange = connection.begin("GET", b"")
    for _ in range(1000):
        connection.data_received(flood * 1000)
        if transport.closed:
            break
    assert transport.unread < 1 << 20
    with pytest.raises(BackendError, match="connection error: ENHANCE_YOUR_CALM"):
        await exchange.wait_for_head()
    connection.connection_lost(None)


@pytest.mark.parametrize(
    ("method", "target", "headers", "host"),
    [
        ("GET", "/", [(b"x-a", b"1\r\nx-remote-user: root")], ""),
        ("GET", "/", [(b"x-a", b"1\n2")], ""),
        ("GET", "/", [(b"x-a", b"1\x002")], ""),
        ("GET", "/", [(b":path", b"/other")], ""),
        ("GET", "/", [(b"x y", b"1")], ""),
        ("GET", "/ HTTP/1.1\r\nX-A: 1", [], ""),
        ("GET", "https://other/", [], ""),
        ("GET", "/a b", [], ""),
        ("GET /x", "/", [], ""),
        ("GET", "/", [], "host\r\nx-a: 1"),
        ("GET", "/", [], "host/path"),
        ("GET", "/", [], "user@host"),
    ],
)
async def test_a_request_that_http2_would_carry_differently_is_not_sent(
    context: Context, pool: BackendPool, method: str, target: str, headers: HeaderList, host: str
) -> None:
    requests: list[object] = []

    async def serve(peer: Http2Peer) -> None:
        await peer.greet()
        requests.append(await peer.request())

    async with Http2Backend(serve, context()) as backend:
        with pytest.raises(BackendError):
            await pool.exchange(backend.endpoint, method, target, headers, host=host, shared=True)
    assert not requests


async def test_headers_of_an_http1_connection_do_not_reach_an_http2_backend(
    serve: Serve, context: Context, pool: BackendPool
) -> None:
    received: list[tuple[str, str]] = []

    async def backend_serves(peer: Http2Peer) -> None:
        await peer.greet()
        stream, fields = await peer.request()
        received.extend(fields)
        peer.answer(stream)
        await peer.reader.read()

    async with Http2Backend(backend_serves, context()) as backend:
        client = await watching_client(serve, pool, backend.endpoint)
        client.get(
            "/watch?a=b",
            "Connection: keep-alive, x-secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\n"
            "TE: trailers, gzip\r\nX-Remote-User: root\r\nX-Kept: 1\r\nContent-Length: 0\r\n",
        )
        assert (await client.answer())[0] == 200
        await client.close()
        authority = backend.endpoint.authority
    pseudo = [(":method", "GET"), (":scheme", "https"), (":path", "/watch?a=b"), (":authority", authority)]
    assert received[:4] == pseudo
    assert sorted(received[4:]) == [
        ("te", "trailers"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-kept", "1"),
        ("x-remote-group", "g"),
        ("x-remote-user", "alice"),
    ]


async def test_headers_of_a_connection_in_an_http2_response_do_not_reach_an_http1_client(
    serve: Serve, context: Context, pool: BackendPool
) -> None:
    behaviour = then(
        head(
            ("connection", "x-secret"),
            ("x-secret", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("content-length", "5"),
            ("content-length", "5"),
            ("x-remote-user", "root"),
            ("x-kept", "1"),
        ),
        data(b"0\r\n\r\n", end=True),
    )
    async with Http2Backend(behaving(behaviour), context()) as backend:
        client = await watching_client(serve, pool, backend.endpoint)
        client.get("/watch")
        status, headers, body = await client.answer()
        assert (status, body) == (200, b"0\r\n\r\n")
        del headers["date"]
        assert headers == {"x-kept": "1", "content-length": "5"}
        await client.close()
