"""The client side of SPDY/3.1 as kubelets implement it.

It opens streams, sends and receives data, and ends streams. Like upstream's implementation, it ignores flow control
windows.

Upstream: github.com/moby/spdystream, used by k8s.io/streaming/pkg/httpstream/spdy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

_SYN_STREAM: Final = 1
_RST_STREAM: Final = 3
_PING: Final = 6
_FIN: Final = 1
_CANCEL: Final = 5
_CHUNK: Final = 1 << 20
"""The maximum size of a data frame. The length field has 24 bits."""


def _control(kind: int, body: bytes) -> bytes:
    """Return a control frame without flags, whose byte precedes the 24 bits of the length."""
    return b"\x80\x03" + kind.to_bytes(2, "big") + len(body).to_bytes(4, "big") + body


class Session:
    """A SPDY session. It does no I/O of its own: it calls `write`, and received bytes are passed to `feed`.

    Args:
        write: sends bytes.
        on_data: called with the stream, the data, and whether the stream has ended.
    """

    def __init__(self, write: Callable[[bytes], Any], on_data: Callable[[int, bytes, bool], None]) -> None:
        self._write = write
        self._on_data = on_data
        dictionary = files(__package__).joinpath("data/spdy3.dictionary").read_bytes()
        self._headers = zlib.compressobj(wbits=zlib.MAX_WBITS, zdict=dictionary)
        self._next = 1
        self._data = bytearray()

    def open(self, **headers: str) -> int:
        """Open a stream with these headers and return its number."""
        stream, self._next = self._next, self._next + 2
        block = len(headers).to_bytes(4, "big")
        for text in (part for pair in headers.items() for part in pair):
            block += len(text).to_bytes(4, "big") + text.encode()
        compressed = self._headers.compress(block) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        self._write(_control(_SYN_STREAM, stream.to_bytes(4, "big") + bytes(6) + compressed))
        return stream

    def send(self, stream: int, data: bytes, *, last: bool = False) -> None:
        """Send data on a stream, in several frames if it is large. `last` ends this direction of the stream."""
        for at in range(0, max(len(data), 1), _CHUNK):
            part = data[at : at + _CHUNK]
            flags = _FIN if last and at + _CHUNK >= len(data) else 0
            self._write(stream.to_bytes(4, "big") + bytes((flags,)) + len(part).to_bytes(3, "big") + part)

    def reset(self, stream: int) -> None:
        """Cancel a stream in both directions."""
        self._write(_control(_RST_STREAM, stream.to_bytes(4, "big") + _CANCEL.to_bytes(4, "big")))

    def feed(self, data: bytes) -> None:
        """Process received bytes: call `on_data` for each complete frame, and answer pings.

        An incomplete frame is kept.
        """
        self._data += data
        while len(self._data) >= 8:
            size = int.from_bytes(self._data[5:8], "big")
            if len(self._data) < 8 + size:
                return
            head, body = bytes(self._data[:8]), bytes(self._data[8 : 8 + size])
            del self._data[: 8 + size]
            self._handle_frame(head, body)

    def _handle_frame(self, head: bytes, body: bytes) -> None:
        if not head[0] & 0x80:
            self._on_data(int.from_bytes(head[:4], "big"), body, bool(head[4] & _FIN))
            return
        kind = int.from_bytes(head[2:4], "big")
        if kind == _RST_STREAM:
            self._on_data(int.from_bytes(body[:4], "big"), b"", True)
        elif kind == _PING and not body[3] & 1:
            # The server's pings are even; odd ones would answer our own, which are never sent.
            self._write(_control(_PING, body))
