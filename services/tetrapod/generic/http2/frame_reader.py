"""`FrameReader`: splits the bytes of a connection into frames, and joins the header blocks that span several."""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frames import ProtocolError

_MOST_EMPTY_CONTINUATIONS: Final = 32
"""CONTINUATION frames of a header block beyond those that it takes if they have the size that all peers permit."""


class Frame(NamedTuple):
    """An HTTP/2 frame.

    Attributes:
        kind: the type, such as DATA.
        flags: the flags.
        stream: the id of the stream; 0 for the connection.
        payload: the payload; that of a header block includes its CONTINUATION frames.
    """

    kind: int
    flags: int
    stream: int
    payload: bytes


class OversizedBlock(Exception):
    """A header block that is longer than the limit. The connection cannot continue after it.

    Attributes:
        stream: the id of its stream.
    """

    def __init__(self, stream: int) -> None:
        super().__init__(stream)
        self.stream = stream


class FrameReader:
    """Splits the received bytes of one connection into frames. It keeps the bytes of an incomplete frame.

    Args:
        largest_block: the greatest size of a header block.
        largest_frame: the greatest size of a frame's payload, as announced to the peer. The default is HTTP/2's.
    """

    __slots__ = (
        "_at",
        "_block",
        "_continuations",
        "_data",
        "_flags",
        "_in_data",
        "_largest_block",
        "_largest_frame",
        "_missing",
        "_pieces",
        "_stream",
    )

    def __init__(self, largest_block: int, largest_frame: int = frames.DEFAULT_FRAME) -> None:
        self._largest_block, self._largest_frame = largest_block, largest_frame
        self._data = b""
        self._at = 0
        self._pieces: list[bytes] = []  # of an incomplete frame, from its beginning
        self._missing = 0  # bytes without which the incomplete frame is not complete
        self._in_data = False  # it is a DATA frame
        # The header block that is incomplete, if `_stream` is not 0.
        self._stream = self._flags = self._continuations = 0
        self._block = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes. The previous ones must have been read until `next` returned None."""
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._pieces)
            self._pieces.clear()
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes | None:
        """Remove the next `size` bytes from the received data and return them, or None until all have arrived."""
        end = self._at + size
        if end > len(self._data):
            self._keep(end - len(self._data))
            return None
        data, self._at = self._data[self._at : end], end
        return data

    @property
    def empty(self) -> bool:
        """Whether the last frame that `next` returned ends with the last received byte."""
        return self._at == len(self._data)

    @property
    def in_head(self) -> bool:
        """Whether an incomplete frame or an incomplete header block has been received.

        Incomplete DATA frames do not count, because a body may arrive slowly.
        """
        return bool(self._stream or (self._pieces and not self._in_data))

    def next(self) -> Frame | None:
        """Return the next frame, or None if no complete one is left.

        Raises:
            ProtocolError: a frame is too large, or interrupts a header block.
            OversizedBlock: a header block is too large.
        """
        while True:
            data, at = self._data, self._at
            if len(data) - at < frames.HEAD_SIZE:
                self._keep(frames.HEAD_SIZE - (len(data) - at))
                return None
            size, kind, flags, stream = frames.read_head(data, at)
            if size > self._largest_frame:
                raise ProtocolError(frames.FRAME_SIZE_ERROR, "a frame exceeds the maximum frame size")
            end = at + frames.HEAD_SIZE + size
            if end > len(data):
                self._keep(end - len(data))
                self._in_data = kind == frames.DATA
                return None
            self._at = end
            payload = data[at + frames.HEAD_SIZE : end]
            if self._stream:
                if (frame := self._continue(kind, flags, stream, payload)) is not None:
                    return frame
            elif kind == frames.HEADERS:
                block = _header_block(flags, stream, payload)
                if flags & frames.END_HEADERS:
                    return Frame(kind, flags, stream, block)
                self._stream, self._flags, self._continuations = stream, flags, 0
                self._block = bytearray(block)
            else:
                return Frame(kind, flags, stream, payload)

    def _keep(self, missing: int) -> None:
        """Keep the bytes of an incomplete frame, until `missing` more arrive."""
        if self._at < len(self._data):
            self._pieces.append(self._data[self._at :])
            self._missing = missing
        self._data, self._at = b"", 0
        self._in_data = False

    def _continue(self, kind: int, flags: int, stream: int, payload: bytes) -> Frame | None:
        if kind != frames.CONTINUATION or stream != self._stream:
            raise ProtocolError(frames.PROTOCOL_ERROR, "a header block was interrupted")
        self._continuations += 1
        self._block += payload
        most = self._largest_block // frames.DEFAULT_FRAME + _MOST_EMPTY_CONTINUATIONS
        if self._continuations > most or len(self._block) > self._largest_block:
            raise OversizedBlock(stream)
        if not flags & frames.END_HEADERS:
            return None
        self._stream = 0
        block, self._block = bytes(self._block), bytearray()
        return Frame(frames.HEADERS, self._flags, stream, block)


def _header_block(flags: int, stream: int, payload: bytes) -> bytes:
    """Return the payload of a HEADERS frame without padding.

    If the frame has the flag PRIORITY, the five bytes of the priority still precede the header block.

    Raises:
        ProtocolError: the frame is for no stream, or its padding is too long.
    """
    if not stream:
        raise ProtocolError(frames.PROTOCOL_ERROR, "a header block without a stream")
    return frames.unpadded(flags, payload)
