"""Attacks on HTTP/2 servers, and the bounds that the server keeps. Other connections are served throughout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from integration.http.h2.conftest import Connect, Serve2, settled
from support.http2_client import Http2Client
from support.waiting import eventually
from tetrapod.generic.http.h2.allowance import BURST
from tetrapod.generic.http.h2.protocol import Http2Protocol
from tetrapod.generic.http.h2.stream import STREAM_WINDOW
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.unread_responses import HARD, USER_LIMIT
from tetrapod.generic.http2 import frames

FLOOD = int(BURST) + 500
STREAMS = 10


class Handler:
    """A handler that counts how many requests run, waits until it is released, and answers."""

    def __init__(self, body: Callable[[], bytes] = lambda: b"ok") -> None:
        self.running = self.most = self.started = 0
        self.release = asyncio.Event()
        self.body = body

    async def __call__(self, request: Request) -> Response:
        if request.path == "/other":
            return Response(200, [], b"served")
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.release.wait()
        finally:
            self.running -= 1
        return Response(200, [], self.body())


async def served_meanwhile(server: HttpServer, connect: Connect) -> None:
    assert (await (await connect(server)).get("/other")).body == b"served"


def only_connection(server: HttpServer) -> Http2Protocol:
    (connection,) = (found for found in server.state.connections if isinstance(found, Http2Protocol))
    return connection


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_rapid_reset_starts_few_handlers_and_ends_the_connection(
    serve2: Serve2, connect: Connect, method: str
) -> None:
    """CVE-2023-44487. A GET is cancelled, a write goes on; either way there are no more handlers than streams."""
    handler = Handler()
    server = await serve2(handler, STREAMS)
    client = await connect(server)
    for _ in range(FLOOD):
        client.send(frames.reset(client.request(method=method), frames.CANCEL))
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    assert handler.most <= STREAMS
    await served_meanwhile(server, connect)
    handler.release.set()
    await eventually(settled(server))


async def test_writes_of_reset_streams_wait_in_a_short_queue(serve2: Serve2, connect: Connect) -> None:
    handler = Handler()
    client = await connect(await serve2(handler, STREAMS))
    for _ in range(6 * STREAMS):
        client.send(frames.reset(client.request(method="POST"), frames.CANCEL))
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    assert handler.most == STREAMS
    handler.release.set()


def zero_window_update(client: Http2Client, stream: int) -> None:
    client.send(frames.window_update(stream, 0))


def window_overflow(client: Http2Client, stream: int) -> None:
    client.send(frames.window_update(stream, frames.LARGEST_WINDOW))


def headers_again(client: Http2Client, stream: int) -> None:
    client.headers([("x", "y")], stream=stream)


def data_after_end(client: Http2Client, stream: int) -> None:
    client.data(stream, b"x")


def priority_of_itself(client: Http2Client, stream: int) -> None:
    client.frame(frames.PRIORITY, 0, stream, stream.to_bytes(4, "big") + b"\1")


def short_priority(client: Http2Client, stream: int) -> None:
    client.frame(frames.PRIORITY, 0, stream, b"1234")


@pytest.mark.parametrize(
    "provoke",
    [zero_window_update, window_overflow, headers_again, data_after_end, priority_of_itself, short_priority],
)
async def test_resets_that_a_client_provokes_are_counted(
    serve2: Serve2, connect: Connect, provoke: Callable[[Http2Client, int], None]
) -> None:
    """CVE-2025-8671, MadeYouReset."""
    handler = Handler()
    server = await serve2(handler, STREAMS)
    client = await connect(server)
    for _ in range(FLOOD):
        provoke(client, client.request())
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    assert handler.most <= STREAMS
    await served_meanwhile(server, connect)
    handler.release.set()


def ping(client: Http2Client) -> None:
    client.frame(frames.PING, 0, 0, b"12345678")


def ping_acknowledgement(client: Http2Client) -> None:
    client.frame(frames.PING, frames.ACK, 0, b"12345678")


def settings(client: Http2Client) -> None:
    client.send(frames.settings({}))


def priority(client: Http2Client) -> None:
    client.frame(frames.PRIORITY, 0, 1, b"\0\0\0\0\1")


def unknown(client: Http2Client) -> None:
    client.frame(0xAB, 0, 0, b"")


def empty_data(client: Http2Client) -> None:
    if client.number < 0:
        client.request(method="POST", end=False)
    client.data(1, b"")


def padding(client: Http2Client) -> None:
    if client.number < 0:
        client.request(method="POST", end=False)
    client.frame(frames.DATA, frames.PADDED, 1, b"\0")


def window_of_a_closed_stream(client: Http2Client) -> None:
    if client.number < 0:
        client.send(frames.reset(client.request(), frames.CANCEL))
    client.send(frames.window_update(1, 1))


def resets_of_a_closed_stream(client: Http2Client) -> None:
    if client.number < 0:
        client.request()
    client.send(frames.reset(1, frames.CANCEL))


def malformed_requests(client: Http2Client) -> None:
    client.headers([(":method", "GET")])


@pytest.mark.parametrize(
    "flood",
    [
        ping,
        ping_acknowledgement,
        settings,
        priority,
        unknown,
        empty_data,
        padding,
        window_of_a_closed_stream,
        resets_of_a_closed_stream,
        malformed_requests,
    ],
)
async def test_a_flood_of_frames_ends_the_connection(
    serve2: Serve2, connect: Connect, flood: Callable[[Http2Client], None]
) -> None:
    server = await serve2(Handler())
    client = await connect(server)
    for _ in range(FLOOD):
        flood(client)
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    await served_meanwhile(server, connect)


async def test_a_flood_of_requests_is_begun_in_steps_between_which_others_are_served(
    serve2: Serve2, connect: Connect
) -> None:
    order: list[str] = []

    async def handler(request: Request) -> Response:
        order.append(request.path)
        return Response(200, [], b"ok")

    server = await serve2(handler, 1000)
    flooding, other = await connect(server), await connect(server)
    await flooding.ping()
    await other.ping()
    streams = [flooding.request("/flood") for _ in range(1000)]
    other.request("/other")
    assert (await flooding.answer(streams[-1])).status == 200
    assert len(order) == 1001
    assert order.index("/other") < 30  # with steps of 5 ms it was the 54th


async def test_streams_beyond_the_limit_are_refused(serve2: Serve2, connect: Connect) -> None:
    handler = Handler()
    client = await connect(await serve2(handler, STREAMS))
    accepted = [client.request() for _ in range(STREAMS)]
    assert (await client.answer(client.request())).reset == frames.REFUSED_STREAM
    assert client.settings[frames.MAX_CONCURRENT_STREAMS] == STREAMS
    handler.release.set()
    assert [(await client.answer(stream)).status for stream in accepted] == [200] * STREAMS


@pytest.mark.parametrize("size", [0, 1, 16_000])
async def test_a_flood_of_continuation_frames_ends_the_connection(serve2: Serve2, connect: Connect, size: int) -> None:
    """CVE-2024-27316."""
    server = await serve2(Handler())
    client = await connect(server)
    client.frame(frames.HEADERS, frames.END_STREAM, 1, b"\x82")
    for _ in range(100):
        client.frame(frames.CONTINUATION, 0, 1, b"\x82" * size)
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    await served_meanwhile(server, connect)


async def test_a_small_block_that_decodes_to_a_large_list_is_rejected(serve2: Serve2, connect: Connect) -> None:
    """An HPACK bomb: a header of 4,000 bytes in the dynamic table, and a thousand references of one byte to it."""
    server = await serve2(Handler())
    client = await connect(server)
    bomb = client.encoder.encode([("x", "a" * 4000)]) + b"\xbe" * 1000
    client.frame(frames.HEADERS, frames.END_STREAM | frames.END_HEADERS, 1, bomb)
    assert await client.until_closed() == frames.ENHANCE_YOUR_CALM
    assert client.answers[1].status == 431
    await served_meanwhile(server, connect)


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x0f",
        b"\xbe",
        b"\x3f\xff\xff\x7f",
        b"\x82\x20",
        b"\x00\x05ab",
        b"\x00\x81\xff\x00",
        b"\x40",
    ],
)
async def test_a_block_that_cannot_be_decoded_ends_the_connection(
    serve2: Serve2, connect: Connect, block: bytes
) -> None:
    server = await serve2(Handler())
    client = await connect(server)
    client.frame(frames.HEADERS, frames.END_STREAM | frames.END_HEADERS, 1, block)
    assert await client.until_closed() == frames.COMPRESSION_ERROR
    await served_meanwhile(server, connect)


async def test_clients_with_a_window_of_zero_occupy_bounded_memory(serve2: Serve2, connect: Connect) -> None:
    size = 4 << 20
    handler = Handler(lambda: b"x" * size)
    server = await serve2(handler)
    client = await connect(server, 0)
    for _ in range(100):
        client.request()
    await eventually(settled(server, 100))
    handler.release.set()
    await eventually(settled(server))
    protocol = only_connection(server)
    held = sum(stream.unread() for stream in protocol.streams.values())
    assert held <= HARD * USER_LIMIT + size
    await client.until(lambda: sum(answer.reset is not None for answer in client.answers.values()) >= 60)
    await served_meanwhile(server, connect)


async def test_a_client_that_reads_nothing_is_disconnected(serve2: Serve2, connect: Connect) -> None:
    """Responses without a body do not wait for a window, but for the client to read."""

    async def handler(request: Request) -> Response:
        return Response(204, [(b"x-large", b"y" * 4000)] if request.path == "/" else [])

    server = await serve2(handler)
    client = await connect(server)
    await client.until(lambda: client.settings)
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    connection = only_connection(server)
    for _ in range(100):
        for _ in range(100):
            client.request()
        await asyncio.sleep(0.01)
        if not server.state.connections:
            break
    assert connection.outgoing.buffered() < 1 << 20

    async def gone() -> bool:
        return connection not in server.state.connections

    await eventually(gone)


async def test_an_upload_that_no_handler_reads_stops_at_its_window(serve2: Serve2, connect: Connect) -> None:
    handler = Handler()
    server = await serve2(handler)
    client = await connect(server)
    stream = client.request(method="POST", end=False)
    client.data(stream, b"x" * STREAM_WINDOW)
    await client.ping()
    assert stream not in client.windows
    client.data(stream, b"x")
    assert (await client.answer(stream)).reset == frames.FLOW_CONTROL_ERROR
    await served_meanwhile(server, connect)


@pytest.mark.parametrize(
    ("incomplete", "code"),
    [
        (b"", frames.SETTINGS_TIMEOUT),
        (frames.PREFACE[:10], frames.SETTINGS_TIMEOUT),
        (frames.PREFACE, frames.SETTINGS_TIMEOUT),
        (frames.PREFACE + frames.settings({}) + b"\0\0", frames.PROTOCOL_ERROR),
        (frames.PREFACE + frames.settings({}) + frames.head(frames.HEADERS, 0, 1, 10) + b"\x82", frames.PROTOCOL_ERROR),
        (frames.PREFACE + frames.settings({}) + frames.frame(frames.HEADERS, 0, 1, b"\x82"), frames.PROTOCOL_ERROR),
    ],
    ids=["nothing", "part of the preface", "preface", "part of a frame", "part of HEADERS", "no CONTINUATION"],
)
async def test_a_head_that_does_not_end_is_given_up(
    serve2: Serve2, connect: Connect, incomplete: bytes, code: int
) -> None:
    server = await serve2(Handler())
    client = await connect(server, greet=False)
    client.send(incomplete)
    await client.until(lambda: client.settings)
    connection = only_connection(server)
    await asyncio.sleep(0.05)
    connection.check_idle(asyncio.get_running_loop().time() + 31)
    assert connection.incomplete_since
    connection.check_idle(asyncio.get_running_loop().time() + 33)
    assert await client.until_closed() == code


async def test_a_slow_upload_is_not_given_up(serve2: Serve2, connect: Connect) -> None:
    handler = Handler()
    server = await serve2(handler)
    client = await connect(server)
    stream = client.request(method="POST", end=False)
    client.send(frames.head(frames.DATA, frames.END_STREAM, stream, 10) + b"part")
    await eventually(settled(server, 1))
    only_connection(server).check_idle(asyncio.get_running_loop().time() + 1000)
    client.send(b"6bytes")
    handler.release.set()
    assert (await client.answer(stream)).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        frames.PREFACE + frames.frame(frames.PING, 0, 0, b"12345678"),
        frames.PREFACE + frames.settings({}) + frames.head(frames.DATA, 0, 1, 1 << 20),
        frames.PREFACE + frames.settings({}) + frames.frame(frames.PUSH_PROMISE, 4, 1, b"\0\0\0\2"),
        frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: 1 << 31}),
    ],
    ids=["HTTP/1.1", "no SETTINGS", "large frame", "push", "large window"],
)
async def test_bytes_that_are_no_http_2_end_the_connection(serve2: Serve2, connect: Connect, wrong: bytes) -> None:
    server = await serve2(Handler())
    client = await connect(server, greet=False)
    client.send(wrong)
    assert await client.until_closed() in (frames.PROTOCOL_ERROR, frames.FRAME_SIZE_ERROR, frames.FLOW_CONTROL_ERROR)
    await served_meanwhile(server, connect)
