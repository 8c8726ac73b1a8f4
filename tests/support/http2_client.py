"""An HTTP/2 client that sends any frame, also wrong ones, and records the frames that it receives."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import hpack

from tetrapod.generic.http2 import frames

Fields = Sequence[tuple[str, str]]
LARGE_WINDOW = 1 << 30


@dataclass
class Answer:
    """The parts of a response that a stream has received so far."""

    headers: dict[str, str] = field(default_factory=dict)
    informational: list[str] = field(default_factory=list)
    trailers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[":status"])


class Http2Client:
    """A connection. `window` is the initial window that the client announces for each stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.answers: dict[int, Answer] = {}
        self.settings: dict[int, int] = {}
        self.goaway: tuple[int, int, bytes] | None = None
        self.pings: list[bytes] = []
        self.windows: dict[int, int] = {}
        self.closed = False
        self.number = -1

    @classmethod
    async def connect(
        cls, port: int, context: ssl.SSLContext, *, window: int = LARGE_WINDOW, greet: bool = True
    ) -> Http2Client:
        context.set_alpn_protocols(["h2"])
        client = cls(*await asyncio.open_connection("localhost", port, ssl=context, family=2))
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        if greet:
            client.send(frames.PREFACE + frames.settings({frames.INITIAL_WINDOW_SIZE: window}))
            client.send(frames.window_update(0, LARGE_WINDOW))
        return client

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self.send(frames.frame(kind, flags, stream, payload))

    def headers(self, fields: Fields, *, stream: int | None = None, end: bool = True) -> int:
        """Send a header list on a stream, by default on a new one, and return its number."""
        if stream is None:
            self.number += 2
            stream = self.number
        block = self.encoder.encode(fields, huffman=True)
        flags = frames.END_STREAM if end else 0
        first, rest = block[: frames.DEFAULT_FRAME], block[frames.DEFAULT_FRAME :]
        self.frame(frames.HEADERS, flags | (0 if rest else frames.END_HEADERS), stream, first)
        while rest:
            piece, rest = rest[: frames.DEFAULT_FRAME], rest[frames.DEFAULT_FRAME :]
            self.frame(frames.CONTINUATION, 0 if rest else frames.END_HEADERS, stream, piece)
        return stream

    def request(
        self, path: str = "/", *more: tuple[str, str], method: str = "GET", body: bytes | None = None, end: bool = True
    ) -> int:
        """Send a request and return its stream. With `end=False` more of its body follows."""
        fields = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path), *more]
        stream = self.headers(fields, end=end and body is None)
        if body is not None:
            self.data(stream, body, end=end)
        return stream

    def data(self, stream: int, body: bytes, *, end: bool = False) -> None:
        for start in range(0, max(len(body), 1), frames.DEFAULT_FRAME):
            piece = body[start : start + frames.DEFAULT_FRAME]
            last = end and start + frames.DEFAULT_FRAME >= len(body)
            self.frame(frames.DATA, frames.END_STREAM if last else 0, stream, piece)

    async def next_frame(self) -> tuple[int, int, int, bytes] | None:
        """Read a frame and record it. Return None at the end of the connection."""
        try:
            size, kind, flags, stream = frames.read_head(await self.reader.readexactly(frames.HEAD_SIZE), 0)
            payload = await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.closed = True
            return None
        self._record(kind, flags, stream, payload)
        return kind, flags, stream, payload

    def _record(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        answer = self.answers.setdefault(stream, Answer())
        if kind == frames.HEADERS:
            assert flags & frames.END_HEADERS
            fields = {str(name): str(value) for name, value in self.decoder.decode(payload)}
            if fields.get(":status", "").startswith("1"):
                answer.informational.append(fields[":status"])
            elif answer.headers:
                answer.trailers = fields
            else:
                answer.headers = fields
        elif kind == frames.DATA:
            answer.body += payload
        elif kind == frames.RST_STREAM:
            answer.reset = frames.read_number(payload)
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            self.settings.update(frames.read_settings(payload))
        elif kind == frames.PING:
            self.pings.append(payload)
        elif kind == frames.WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, 0) + frames.read_number(payload)
        elif kind == frames.GOAWAY:
            self.goaway = frames.read_goaway(payload)
        if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
            answer.ended = True

    async def until(self, condition: Callable[[], object]) -> None:
        """Read frames until the condition is true, and fail if the connection is closed before."""
        while not condition():
            assert await self.next_frame() is not None, "the server has closed the connection"

    async def until_received(self, stream: int, size: int = 0) -> Answer:
        """Read frames until a stream has received one, and this many bytes; return all that it has received."""
        await self.until(lambda: stream in self.answers and len(self.answers[stream].body) >= size)
        return self.answers[stream]

    async def ping(self) -> None:
        """Send a PING and read frames until the server has answered it, and so has handled all frames before."""
        answered = len(self.pings)
        self.frame(frames.PING, 0, 0, b"12345678")
        await self.until(lambda: len(self.pings) > answered)

    async def answer(self, stream: int) -> Answer:
        """Read frames until a stream has ended, was reset, or the connection is closed."""
        while not (answer := self.answers.setdefault(stream, Answer())).ended and answer.reset is None:
            if await self.next_frame() is None:
                break
        return self.answers[stream]

    async def get(self, path: str = "/", *more: tuple[str, str]) -> Answer:
        return await self.answer(self.request(path, *more))

    async def until_closed(self) -> int | None:
        """Read frames until the connection is closed, and return the error code of its GOAWAY."""
        while await self.next_frame() is not None:
            pass
        return self.goaway[1] if self.goaway is not None else None

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)
