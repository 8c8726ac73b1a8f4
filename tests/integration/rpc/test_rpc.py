"""The HTTP/2 client of etcd's API against a server with rare behaviour. Every frame below is sent over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import hpack
import pytest

from tetrapod.generic.http2 import frames, keepalive
from tetrapod.generic.rpc import Channel, Code, RpcError, connection

Frame = tuple[int, int, int, bytes]
OK = [(":status", "200"), ("content-type", "application/grpc")]
GOOD = [("grpc-status", "0")]


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._encoder = hpack.Encoder()
        self._encoder.header_table_size = 0
        self.settings: dict[int, int] = {}

    async def frame(self, *kinds: int) -> Frame:
        """Return the next frame of these types, ignoring others."""
        while True:
            size, kind, flags, stream = frames.read_head(await self.reader.readexactly(9), 0)
            payload = await self.reader.readexactly(size)
            if kind in kinds:
                return kind, flags, stream, payload

    async def greet(self, settings: dict[int, int] | None = None) -> None:
        assert await self.reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.settings = frames.read_settings((await self.frame(frames.SETTINGS))[3])
        self.send(frames.settings(settings or {}))

    def send(self, *data: bytes) -> None:
        self.writer.write(b"".join(data))

    def headers(self, stream: int, fields: list[tuple[str, str]], *, last: bool = False) -> bytes:
        flags = frames.END_HEADERS | (frames.END_STREAM if last else 0)
        return frames.frame(frames.HEADERS, flags, stream, self._encoder.encode(fields))

    def block(self, fields: list[tuple[str, str]]) -> bytes:
        encoded: bytes = self._encoder.encode(fields)
        return encoded

    def answer(self, stream: int, message: bytes) -> bytes:
        data = frames.frame(frames.DATA, 0, stream, prefixed(message))
        return self.headers(stream, OK) + data + self.headers(stream, GOOD, last=True)

    async def asked(self) -> int:
        """Return the stream of the next call that was sent completely."""
        while True:
            _, flags, stream, _ = await self.frame(frames.HEADERS, frames.DATA)
            if flags & frames.END_STREAM:
                return stream


def prefixed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


@asynccontextmanager
async def serving(behave: Callable[[Peer], Awaitable[None]], **more: Any) -> AsyncIterator[Channel]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behave(Peer(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    channel = Channel("127.0.0.1", server.sockets[0].getsockname()[1], **more)
    try:
        yield channel
    finally:
        await channel.close()
        server.close()


async def rejection(call: Awaitable[bytes]) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await asyncio.wait_for(call, 10)
    return caught.value


async def test_an_answer_may_come_in_any_pieces() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        stream = await peer.asked()
        whole = peer.answer(stream, b"x" * 300)
        for i in range(0, len(whole), 7):
            peer.send(whole[i : i + 7])
            await peer.writer.drain()
            await asyncio.sleep(0)
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        assert await asyncio.wait_for(channel.unary("/s/M", b"question", 5), 10) == b"x" * 300


async def test_padding_priorities_and_continued_headers_are_understood() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        stream = await peer.asked()
        block = peer.block(OK)
        peer.send(
            frames.frame(
                frames.HEADERS, frames.PRIORITY_FLAG | frames.PADDED, stream, b"\2" + b"\0" * 5 + block[:1] + b"\0\0"
            )
        )
        peer.send(frames.frame(frames.CONTINUATION, 0, stream, block[1:3]))
        peer.send(frames.frame(frames.CONTINUATION, frames.END_HEADERS, stream, block[3:]))
        peer.send(frames.frame(frames.DATA, frames.PADDED, stream, b"\3" + prefixed(b"padded") + b"\0\0\0"))
        peer.send(peer.headers(stream, GOOD, last=True))
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        assert await asyncio.wait_for(channel.unary("/s/M", b"", 5), 10) == b"padded"


async def test_no_more_is_sent_than_the_windows_and_frames_of_the_server_allow() -> None:
    got = bytearray()

    async def behave(peer: Peer) -> None:
        await peer.greet({frames.INITIAL_WINDOW_SIZE: 1000, frames.MAX_FRAME_SIZE: 16_384})
        while True:
            _, flags, stream, payload = await peer.frame(frames.DATA)
            got.extend(payload)
            assert len(payload) <= 1000
            if flags & frames.END_STREAM:
                break
            peer.send(frames.window_update(stream, len(payload)), frames.window_update(0, len(payload)))
        peer.send(peer.answer(stream, b"taken"))
        await peer.frame(frames.GOAWAY)

    message = bytes(range(256)) * 400
    async with serving(behave) as channel:
        await channel.connect()
        assert await asyncio.wait_for(channel.unary("/s/M", message, 5), 10) == b"taken"
    assert bytes(got) == prefixed(message)


async def test_a_rejection_has_its_code_and_its_text() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        peer.send(
            peer.headers(await peer.asked(), [*OK, ("grpc-status", "11"), ("grpc-message", "it%27s gone")], last=True)
        )
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        error = await rejection(channel.unary("/s/M", b"", 5))
    assert (error.code, error.details) == (Code.OUT_OF_RANGE, "it's gone")


@pytest.mark.parametrize(
    ("reason", "code"), [(7, Code.UNAVAILABLE), (8, Code.CANCELLED), (11, Code.RESOURCE_EXHAUSTED), (2, Code.INTERNAL)]
)
async def test_a_stream_that_is_reset_ends_its_call_alone(reason: int, code: Code) -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        peer.send(frames.reset(await peer.asked(), reason))
        peer.send(peer.answer(await peer.asked(), b"fine"))
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        assert (await rejection(channel.unary("/s/M", b"", 5))).code is code
        assert await asyncio.wait_for(channel.unary("/s/M", b"", 5), 10) == b"fine"


async def test_a_deadline_is_reported_to_the_server_and_kept_here() -> None:
    asked: list[tuple[bytes | str, bytes | str]] = []
    reset = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.greet()
        asked.extend(hpack.Decoder().decode((await peer.frame(frames.HEADERS))[3]))
        assert frames.read_number((await peer.frame(frames.RST_STREAM))[3]) == frames.CANCEL
        reset.set()

    async with serving(behave) as channel:
        await channel.connect()
        assert (await rejection(channel.unary("/s/M", b"", 0.05))).code is Code.DEADLINE_EXCEEDED
        await asyncio.wait_for(reset.wait(), 10)
    assert ("grpc-timeout", "50m") in asked
    assert (":path", "/s/M") in asked
    assert ("te", "trailers") in asked


async def test_a_cancelled_call_resets_its_stream() -> None:
    begun, reset = asyncio.Event(), asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.greet()
        await peer.asked()
        begun.set()
        await peer.frame(frames.RST_STREAM)
        reset.set()

    async with serving(behave) as channel:
        await channel.connect()
        task = asyncio.create_task(channel.unary("/s/M", b"", 5))
        await asyncio.wait_for(begun.wait(), 10)
        task.cancel()
        await asyncio.wait_for(reset.wait(), 10)


async def test_a_server_that_goes_away_finishes_what_it_took_and_nothing_else() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        first = await peer.asked()
        await peer.asked()
        peer.send(frames.frame(frames.GOAWAY, 0, 0, first.to_bytes(4, "big") + b"\0\0\0\0"))
        peer.send(peer.answer(first, b"done"))
        assert await peer.reader.read() == b""

    async with serving(behave) as channel:
        await channel.connect()
        one, two = (asyncio.create_task(channel.unary("/s/M", b"", 5)) for _ in range(2))
        assert await asyncio.wait_for(one, 10) == b"done"
        assert (await rejection(two)).code is Code.UNAVAILABLE
        assert not channel.ready
        assert (await rejection(channel.unary("/s/M", b"", 5))).code is Code.UNAVAILABLE


async def test_no_more_calls_at_once_than_the_server_takes() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet({frames.MAX_CONCURRENT_STREAMS: 1})
        open_now = 0
        for _ in range(3):
            stream = await peer.asked()
            open_now += 1
            assert open_now == 1
            open_now -= 1
            peer.send(peer.answer(stream, b"x"))
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        assert (
            await asyncio.wait_for(asyncio.gather(*(channel.unary("/s/M", b"", 5) for _ in range(3))), 10) == [b"x"] * 3
        )


async def test_both_sides_of_a_stream_talk_as_they_like() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        _, _, stream, _ = await peer.frame(frames.HEADERS)
        peer.send(peer.headers(stream, OK))
        for _ in range(2):
            _, _, _, payload = await peer.frame(frames.DATA)
            peer.send(frames.frame(frames.DATA, 0, stream, payload + prefixed(b"and more")))
        peer.send(peer.headers(stream, GOOD, last=True))
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        call = await channel.stream("/s/Watch", (("hasleader", "true"),))
        call.send(b"one")
        assert [await anext(call), await anext(call)] == [b"one", b"and more"]
        call.send(b"two")
        assert [message async for message in call] == [b"two", b"and more"]


async def test_pings_are_answered() -> None:
    answered = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.greet()
        peer.send(frames.frame(frames.PING, 0, 0, b"12345678"))
        _, flags, _, payload = await peer.frame(frames.PING)
        assert (flags, payload) == (frames.ACK, b"12345678")
        many = [b"%08d" % number for number in range(100)]
        peer.send(b"".join(frames.frame(frames.PING, 0, 0, payload) for payload in many))
        assert [(await peer.frame(frames.PING))[3] for _ in many] == many
        answered.set()

    async with serving(behave) as channel:
        await channel.connect()
        await asyncio.wait_for(answered.wait(), 10)


async def test_a_server_that_stops_answering_is_detected_by_keepalive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "KEEPALIVE", 0.05)
    monkeypatch.setattr(connection, "KEEPALIVE_TIMEOUT", 0.05)

    async def behave(peer: Peer) -> None:
        await peer.greet()
        await peer.reader.read()

    async with serving(behave) as channel:
        await channel.connect()
        error = await rejection(channel.unary("/s/M", b"", 30))
        assert (error.code, error.details) == (Code.UNAVAILABLE, "keepalive watchdog timeout")
        assert not channel.ready


async def test_new_calls_soon_leave_a_server_that_does_not_answer_and_running_writes_do_not() -> None:
    given_up = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.greet()
        write, _ = await peer.asked(), await peer.asked()
        await given_up.wait()
        peer.send(peer.answer(write, b"done after all"))
        await peer.reader.read()

    async with serving(behave, response_timeout=0.05, on_unresponsive=given_up.set) as channel:
        await channel.connect()
        write = asyncio.create_task(channel.unary("/s/Write", b"", 60))
        await asyncio.sleep(0)
        error = await rejection(channel.unary("/s/Read", b"", 60, repeatable=True))
        assert (error.code, error.details) == (Code.UNAVAILABLE, "the server does not answer")
        assert given_up.is_set() and not channel.ready
        assert await asyncio.wait_for(write, 10) == b"done after all"


async def test_a_server_that_answers_pings_is_waited_for_and_not_asked_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keepalive, "PING_INTERVAL", 0.1)
    pings: list[float] = []

    async def behave(peer: Peer) -> None:
        await peer.greet()
        stream = await peer.asked()
        for _ in range(3):
            _, _, _, payload = await peer.frame(frames.PING)
            pings.append(asyncio.get_running_loop().time())
            peer.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        peer.send(peer.answer(stream, b"late"))
        await peer.reader.read()

    def wrong() -> None:
        raise AssertionError("it has answered")

    async with serving(behave, response_timeout=0.02, on_unresponsive=wrong) as channel:
        await channel.connect()
        assert await asyncio.wait_for(channel.unary("/s/Read", b"", 60, repeatable=True), 10) == b"late"
    assert all(later - earlier > 0.09 for earlier, later in pairwise(pings))


@pytest.mark.parametrize(
    "bad",
    [
        frames.head(frames.DATA, 0, 1, (1 << 20) + 1),
        frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b""),
        frames.frame(frames.HEADERS, 0, 1, b"\x88") + frames.frame(frames.PING, 0, 0, b"12345678"),
        frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\xff\xff"),
        frames.frame(frames.HEADERS, frames.END_HEADERS | frames.PADDED, 1, b"\x09\x88"),
        frames.frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, b"\0\0\0\2\x88"),
        frames.frame(frames.SETTINGS, 0, 0, b"\0"),
        frames.frame(frames.GOAWAY, 0, 0, b"\0"),
    ],
)
async def test_invalid_http2_ends_the_connection_and_its_calls(bad: bytes) -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        await peer.asked()
        peer.send(bad)
        await peer.reader.read()

    async with serving(behave) as channel:
        await channel.connect()
        assert (await rejection(channel.unary("/s/M", b"", 5))).code is Code.INTERNAL
        assert not channel.ready


async def test_a_lost_connection_ends_every_call_and_the_next_one_is_new() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        await peer.asked()

    async with serving(behave) as channel:
        for _ in range(2):
            await channel.connect()
            calls = [channel.unary("/s/M", b"", 5) for _ in range(2)]
            found = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
            assert [isinstance(error, RpcError) and error.code for error in found] == [Code.UNAVAILABLE] * 2


async def test_a_response_without_a_grpc_status_is_an_error() -> None:
    async def behave(peer: Peer) -> None:
        await peer.greet()
        stream = await peer.asked()
        peer.send(peer.headers(stream, OK), frames.frame(frames.DATA, frames.END_STREAM, stream, prefixed(b"x")))
        stream = await peer.asked()
        peer.send(peer.headers(stream, [(":status", "503")], last=True))
        await peer.frame(frames.GOAWAY)

    async with serving(behave) as channel:
        await channel.connect()
        assert (await rejection(channel.unary("/s/M", b"", 5))).code is Code.INTERNAL
        assert (await rejection(channel.unary("/s/M", b"", 5))).code is Code.UNAVAILABLE
