"""The settings of both sides of an HTTP/2 connection."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.generic.http.h2.stream import STREAM_WINDOW
from tetrapod.generic.http.limits import MAX_HEAD
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frames import ProtocolError


def greeting(streams: int) -> bytes:
    """Return the first frames of the server: its settings, and the window of the connection.

    Frames have the default size of 16 kB at most: a frame is kept until it is complete, and 256 kB, upstream's size,
    would save 0.2 ms for a body of a megabyte.

    Args:
        streams: the number of streams that the client may have open.
    """
    settings = frames.settings(
        {
            frames.MAX_CONCURRENT_STREAMS: streams,
            frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            frames.MAX_HEADER_LIST_SIZE: MAX_HEAD,
        }
    )
    return settings + frames.window_update(0, connection_window(streams) - frames.DEFAULT_WINDOW)


def connection_window(streams: int) -> int:
    """Return the bytes of request bodies that a client may send on all streams before handlers read them."""
    return min(streams * STREAM_WINDOW, frames.LARGEST_WINDOW)


@dataclass(slots=True)
class ClientSettings:
    """The settings of the client that the server obeys.

    Attributes:
        window: the window of a new stream.
        largest_frame: the size of the largest frame that the client accepts.
    """

    window: int = frames.DEFAULT_WINDOW
    largest_frame: int = frames.DEFAULT_FRAME

    def update(self, payload: bytes) -> None:
        """Take the values of a SETTINGS frame.

        The client's header table is not used, and its limits of streams and headers do not concern responses.

        Raises:
            ProtocolError: a value is invalid.
        """
        for setting, value in frames.read_settings(payload).items():
            if setting == frames.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW:
                    raise ProtocolError(frames.FLOW_CONTROL_ERROR, "a window is too large")
                self.window = value
            elif setting == frames.MAX_FRAME_SIZE:
                if not frames.DEFAULT_FRAME <= value <= frames.LARGEST_FRAME:
                    raise ProtocolError(frames.PROTOCOL_ERROR, "the maximum frame size is invalid")
                self.largest_frame = value
            elif setting == frames.ENABLE_PUSH and value > 1:
                raise ProtocolError(frames.PROTOCOL_ERROR, "ENABLE_PUSH is invalid")
