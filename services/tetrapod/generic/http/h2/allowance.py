"""`Allowance`: how many frames a client may send that cost work and bring no request forward.

Such frames are PING, SETTINGS, PRIORITY, RST_STREAM, empty DATA, frames of unknown types and frames for closed streams.
A stream that the server resets because of the client counts too, so that a client cannot provoke resets to start more
requests than the limit of concurrent streams allows (CVE-2023-44487, CVE-2025-8671). Honest clients stay far below:
client-go sends a PING with the reset of each watch that it cancels, and a controller that stops cancels some hundreds
at once.

Go's server limits the handlers of reset streams and the control frames that wait to be written, but no rate.
"""

from __future__ import annotations

from typing import Final

BURST: Final = 2000.0
"""Frames that a client may send at once."""
RATE: Final = 200.0
"""Frames a second that are permitted in the long run. A reset request costs about 0.1 ms: 2 % of a core."""


class Allowance:
    """A token bucket of the frames that one client may send although they serve no request, such as PING or RST_STREAM.

    It is full at first, with `BURST` frames, and gains `RATE` frames a second.

    Args:
        now: the time of the event loop in seconds.
    """

    __slots__ = ("_left", "_refilled")

    def __init__(self, now: float) -> None:
        self._left = BURST
        self._refilled = now

    def spend(self, now: float) -> bool:
        """Count a frame and return True. Return False if the client has sent too many: the bucket is empty.

        Args:
            now: the time of the event loop in seconds.
        """
        if self._left < 1:
            self._left = min(BURST, self._left + (now - self._refilled) * RATE)
            self._refilled = now
            if self._left < 1:
                return False
        self._left -= 1
        return True
