"""Timeouts of client connections, in HTTP/1.1 and HTTP/2."""

from __future__ import annotations

from typing import Final

HEAD_TIMEOUT: Final = 32.0
"""Seconds in which the head of a request must arrive, or in HTTP/2 the preface, a frame or a header block."""
IDLE_TIMEOUT: Final = 90.0
"""Seconds after which a connection without a request is closed."""
LINGER: Final = 0.5
"""Seconds in which a rejected client's data is still read and dropped: a reset would lose the response or GOAWAY."""
