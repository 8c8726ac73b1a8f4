"""Encoding and decoding of HTTP/2 frames (RFC 9113, sections 4 and 6), as pure functions."""

from __future__ import annotations

import struct
from typing import Final

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITY_FLAG: Final = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED = range(6)
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, _, ENHANCE_YOUR_CALM = range(6, 12)

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_SIZE: Final = 9
DEFAULT_WINDOW: Final = 65_535
LARGEST_WINDOW: Final = (1 << 31) - 1
DEFAULT_FRAME: Final = 16_384
LARGEST_FRAME: Final = (1 << 24) - 1

_head = struct.Struct(">IBI")
_setting = struct.Struct(">HI")
_number = struct.Struct(">I")
_two = struct.Struct(">II")


class ProtocolError(Exception):
    """A violation of HTTP/2 by the peer, after which the connection cannot continue.

    Attributes:
        code: the HTTP/2 error code.

    Args:
        code: the HTTP/2 error code, for the GOAWAY frame.
        text: the text of the exception.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def head(kind: int, flags: int, stream: int, size: int) -> bytes:
    """Return the nine bytes that precede the payload of a frame (RFC 9113, 4.1).

    Args:
        kind: the frame type, such as DATA.
        flags: the flags, such as END_STREAM.
        stream: the id of the stream; 0 is the connection.
        size: the size of the payload in bytes.
    """
    return _head.pack(size << 8 | kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a whole frame.

    Args:
        kind: the frame type, such as DATA.
        flags: the flags, such as END_STREAM.
        stream: the id of the stream; 0 is the connection.
        payload: the content.
    """
    return _head.pack(len(payload) << 8 | kind, flags, stream) + payload


def header_frames(block: bytes, flags: int, stream: int, largest: int) -> bytes:
    """Return the frames of a header block: HEADERS, and CONTINUATION frames for what exceeds `largest` bytes.

    Args:
        block: the encoded headers.
        flags: the flags of the HEADERS frame, such as END_STREAM. END_HEADERS is added to the last frame.
        stream: the id of the stream.
        largest: the largest payload of a frame.
    """
    if len(block) <= largest:
        return frame(HEADERS, flags | END_HEADERS, stream, block)
    parts = [frame(HEADERS, flags, stream, block[:largest])]
    for start in range(largest, len(block), largest):
        ended = END_HEADERS if start + largest >= len(block) else 0
        parts.append(frame(CONTINUATION, ended, stream, block[start : start + largest]))
    return b"".join(parts)


def read_head(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Return the payload size, kind, flags and stream of the frame that begins at offset `at`."""
    size_and_kind, flags, stream = _head.unpack_from(data, at)
    return size_and_kind >> 8, size_and_kind & 0xFF, flags, stream & 0x7FFFFFFF


def settings(values: dict[int, int]) -> bytes:
    """Return a SETTINGS frame with these values by identifier."""
    return frame(SETTINGS, 0, 0, b"".join(_setting.pack(*item) for item in values.items()))


def read_settings(payload: bytes) -> dict[int, int]:
    """Return the values in a SETTINGS frame by identifier. The last of duplicate values wins.

    Raises:
        ProtocolError: the payload has a wrong size.
    """
    if len(payload) % 6:
        raise ProtocolError(FRAME_SIZE_ERROR, "SETTINGS has the wrong size")
    return dict(_setting.iter_unpack(payload))


def window_update(stream: int, size: int) -> bytes:
    """Return a frame that allows the peer to send `size` more bytes on a stream; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream, _number.pack(size))


def reset(stream: int, code: int) -> bytes:
    """Return a RST_STREAM frame, which ends a stream at once with this error code."""
    return frame(RST_STREAM, 0, stream, _number.pack(code))


def goaway(code: int, last: int = 0, text: bytes = b"") -> bytes:
    """Return a GOAWAY frame, which ends the connection.

    Args:
        last: the last stream of the peer that was or may be processed; 0 for none.
        text: debug data for the peer's log.
    """
    return frame(GOAWAY, 0, 0, _two.pack(last, code) + text)


def read_number(payload: bytes) -> int:
    """Return the 32 bits in a WINDOW_UPDATE or RST_STREAM.

    Raises:
        ProtocolError: the payload has a wrong size.
    """
    if len(payload) != 4:
        raise ProtocolError(FRAME_SIZE_ERROR, "a frame has the wrong size")
    number: int = _number.unpack(payload)[0]
    return number


def read_goaway(payload: bytes) -> tuple[int, int, bytes]:
    """Return the last processed stream, the error code, and the debug data of a GOAWAY.

    Raises:
        ProtocolError: the payload has a wrong size.
    """
    if len(payload) < 8:
        raise ProtocolError(FRAME_SIZE_ERROR, "GOAWAY has the wrong size")
    last, code = _two.unpack_from(payload)
    return last & 0x7FFFFFFF, code, payload[8:]


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return the payload of a DATA or HEADERS frame without its padding, if its flags say that it has some.

    Raises:
        ProtocolError: the padding is longer than the payload.
    """
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ProtocolError(PROTOCOL_ERROR, "the padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]
