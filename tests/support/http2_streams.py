"""The client side of an HTTP/2 connection without I/O: requests on any number of streams, and their responses.

It obeys the server's flow control and announces small windows of its own, so that both sides' windows are used.
`http2_connection.py` is a blocking client over it. `http2_client.py` sends any frame, also wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import hpack

from tetrapod.generic.http2 import frames

HOP_BY_HOP: Final = frozenset({"connection", "host", "keep-alive", "transfer-encoding", "upgrade"})
"""Headers of HTTP/1.1 that HTTP/2 does not have."""


class StreamReset(ConnectionError):
    """The server has reset a stream, or has closed the connection before the response was complete.

    Attributes:
        code: the HTTP/2 error code; None for a connection that was closed. With REFUSED_STREAM the server has not
            processed the request.
    """

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class Stream:
    """A request, and the parts of its response that have arrived and were not taken."""

    number: int
    window: int
    unsent: memoryview
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    error: StreamReset | None = None
    neglected: bool = False

    @property
    def over(self) -> bool:
        return self.ended or self.error is not None

    def check(self) -> None:
        """Raise the error of a stream whose response will not be complete."""
        if self.error is not None:
            raise StreamReset(str(self.error), self.error.code)


class Http2Streams:
    """The streams of one connection. Bytes in `outgoing` must be sent.

    Args:
        authority: the host and port of the server.
    """

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self.outgoing = bytearray(frames.PREFACE + frames.settings({frames.ENABLE_PUSH: 0}))
        self.streams: dict[int, Stream] = {}
        self.draining = False
        """Whether the server has sent GOAWAY, so that it accepts no further requests."""
        self.changed: set[int] = set()
        """The streams of which the last call of `receive` has received something."""
        self.largest_data = frames.LARGEST_WINDOW
        """Bytes of a body that a DATA frame has at most."""
        self.pongs = 0
        """PING frames that the server has answered."""
        self._most = 100  # streams that the server permits; until its SETTINGS arrive, what RFC 9113 recommends
        self._incoming = bytearray()
        self._block: tuple[int, int, bytes] | None = None  # HEADERS that CONTINUATION continues
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder()
        self._decoder.max_header_list_size = 1 << 20
        self._last = -1
        self._window = self._initial_window = frames.DEFAULT_WINDOW
        self._largest_frame = frames.DEFAULT_FRAME

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> Stream:
        """Send a request on a new stream. A Host header becomes the authority."""
        assert not self.draining
        self._last += 2
        headers = list(headers)
        authority = next((value for name, value in headers if name.lower() == "host"), self._authority)
        fields = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)]
        fields += [(name.lower(), value) for name, value in headers if name.lower() not in HOP_BY_HOP]
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in fields]
        huffman = sum(len(value) for _, value in encoded) < 4096  # hpack's time is quadratic
        block = self._encoder.encode(encoded, huffman=huffman)
        pieces = [block[at : at + self._largest_frame] for at in range(0, len(block), self._largest_frame)]
        for number, piece in enumerate(pieces):
            flags = frames.END_HEADERS if number == len(pieces) - 1 else 0
            if not number and body is None:
                flags |= frames.END_STREAM
            kind = frames.CONTINUATION if number else frames.HEADERS
            self.outgoing += frames.frame(kind, flags, self._last, piece)
        stream = Stream(self._last, self._initial_window, memoryview(body or b""))
        self.streams[stream.number] = stream
        if body == b"":
            self.outgoing += frames.frame(frames.DATA, frames.END_STREAM, stream.number)
        self._send_bodies()
        return stream

    @property
    def room(self) -> bool:
        """Whether the server permits one more stream."""
        return len(self.streams) < self._most

    def ping(self) -> None:
        self.outgoing += frames.frame(frames.PING, 0, 0, b"are you?")

    def cancel(self, stream: Stream) -> None:
        """Reset a stream whose response is not complete, and forget it."""
        if self.streams.pop(stream.number, None) is not None:
            self.outgoing += frames.reset(stream.number, frames.CANCEL)

    def neglect(self, stream: Stream) -> None:
        """Do not widen the window of a stream any more."""
        stream.neglected = True

    def receive(self, data: bytes) -> None:
        """Process bytes of the server. No bytes mean that it has closed the connection."""
        self.changed.clear()
        if not data:
            self.draining = True
            for stream in list(self.streams.values()):
                self._fail(stream, StreamReset("the server has closed the connection"))
            return
        self._incoming += data
        while len(self._incoming) >= frames.HEAD_SIZE:
            size, kind, flags, number = frames.read_head(bytes(self._incoming[: frames.HEAD_SIZE]), 0)
            end = frames.HEAD_SIZE + size
            if len(self._incoming) < end:
                break
            payload = bytes(self._incoming[frames.HEAD_SIZE : end])
            del self._incoming[:end]
            self._frame(kind, flags, number, payload)
        self._send_bodies()

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        assert self._block is None or (kind == frames.CONTINUATION and number == self._block[0])
        stream = self.streams.get(number)
        if kind in (frames.HEADERS, frames.CONTINUATION):
            self._headers(kind, flags, number, payload)
        elif kind == frames.DATA:
            self._data(stream, flags, payload)
        elif kind == frames.RST_STREAM:
            if stream is not None:
                code = frames.read_number(payload)
                self._fail(stream, StreamReset(f"reset with error code {code}", code))
        elif kind == frames.SETTINGS:
            if not flags & frames.ACK:
                self._settings(frames.read_settings(payload))
        elif kind == frames.PING:
            if flags & frames.ACK:
                self.pongs += 1
            else:
                self.outgoing += frames.frame(frames.PING, frames.ACK, 0, payload)
        elif kind == frames.WINDOW_UPDATE:
            if stream is not None:
                stream.window += frames.read_number(payload)
            elif not number:
                self._window += frames.read_number(payload)
        elif kind == frames.GOAWAY:
            self._goaway(*frames.read_goaway(payload))

    def _headers(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == frames.CONTINUATION:
            assert self._block is not None
            _, first, begun = self._block
            flags, payload = flags | first, begun + payload
        if not flags & frames.END_HEADERS:
            self._block = number, flags, payload
            return
        self._block = None
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._decode(payload)]
        stream = self.streams.get(number)
        if stream is None:
            return
        if not stream.status:
            status = int(dict(fields)[":status"])
            if status < 200:
                return
            stream.status = status
            stream.headers = [(name, value) for name, value in fields if name != ":status"]
            self.changed.add(number)
            assert not HOP_BY_HOP & {name for name, _ in stream.headers}
        self._end_if(stream, flags)

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        return [(bytes(field[0]), bytes(field[1])) for field in self._decoder.decode(block, raw=True)]

    def _data(self, stream: Stream | None, flags: int, payload: bytes) -> None:
        if payload:
            self.outgoing += frames.window_update(0, len(payload))
        if stream is None:
            return
        stream.body += frames.unpadded(flags, payload)
        self.changed.add(stream.number)
        self._end_if(stream, flags)
        if payload and not stream.ended and not stream.neglected:
            self.outgoing += frames.window_update(stream.number, len(payload))

    def _end_if(self, stream: Stream, flags: int) -> None:
        if not flags & frames.END_STREAM:
            return
        stream.ended = True
        self.changed.add(stream.number)
        if stream.unsent:  # the server has answered before it has read the whole body
            self.cancel(stream)
        self.streams.pop(stream.number, None)

    def _fail(self, stream: Stream, error: StreamReset) -> None:
        stream.error = error
        self.changed.add(stream.number)
        self.streams.pop(stream.number, None)

    def _settings(self, settings: dict[int, int]) -> None:
        self.outgoing += frames.frame(frames.SETTINGS, frames.ACK, 0)
        self._largest_frame = settings.get(frames.MAX_FRAME_SIZE, self._largest_frame)
        self._most = settings.get(frames.MAX_CONCURRENT_STREAMS, self._most)
        window = settings.get(frames.INITIAL_WINDOW_SIZE, self._initial_window)
        for stream in self.streams.values():
            stream.window += window - self._initial_window
        self._initial_window = window

    def _goaway(self, last: int, code: int, text: bytes) -> None:
        self.draining = True
        for stream in [found for found in self.streams.values() if found.number > last]:
            self._fail(stream, StreamReset(f"GOAWAY with error code {code} {text!r}", frames.REFUSED_STREAM))

    def _send_bodies(self) -> None:
        """Send as much of each body as the windows permit."""
        for stream in self.streams.values():
            most = min(self._largest_frame, self.largest_data)
            while stream.unsent and (size := min(most, stream.window, self._window)) > 0:
                piece, stream.unsent = bytes(stream.unsent[:size]), stream.unsent[size:]
                stream.window -= len(piece)
                self._window -= len(piece)
                flags = 0 if stream.unsent else frames.END_STREAM
                self.outgoing += frames.frame(frames.DATA, flags, stream.number, piece)
