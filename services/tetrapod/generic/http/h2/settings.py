"""The settings that the server announces at the beginning of an HTTP/2 connection."""

from __future__ import annotations

from tetrapod.generic.http.h2.stream import STREAM_WINDOW
from tetrapod.generic.http.limits import MAX_HEAD
from tetrapod.generic.http2 import frames


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
