"""`PeerSettings`: the settings that the other side of a connection has announced, and that this side obeys."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frames import ProtocolError


@dataclass(slots=True)
class PeerSettings:
    """The HTTP/2 settings that the peer of a connection has announced.

    Attributes:
        window: the window of a new stream.
        largest_frame: the size of the largest frame that the peer accepts.
        max_streams: the number of streams that this side may have open. RFC 9113 sets no limit at first.
    """

    window: int = frames.DEFAULT_WINDOW
    largest_frame: int = frames.DEFAULT_FRAME
    max_streams: int = 1 << 31

    def update(self, payload: bytes) -> None:
        """Set the attributes from the payload of a SETTINGS frame.

        Other settings are ignored: this side uses no dynamic table for the headers that it sends, and the peer's limit
        of header lists is advisory.

        Args:
            payload: the payload of the frame.

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
            elif setting == frames.MAX_CONCURRENT_STREAMS:
                self.max_streams = value
            elif setting == frames.ENABLE_PUSH and value > 1:
                raise ProtocolError(frames.PROTOCOL_ERROR, "ENABLE_PUSH is invalid")
