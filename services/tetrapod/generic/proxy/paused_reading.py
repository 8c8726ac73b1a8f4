"""Pausing a transport that may carry TLS, without losing what the other side has sent before it closed.

A TLS transport of uvloop that reaches the end of its socket discards the data that it has received and not passed on
because it was paused. While its buffer is limited to one byte, it does not read on before it has passed on what it has.
"""

from __future__ import annotations

import asyncio
from typing import Any


def pause_reading(transport: Any) -> None:
    """Stop reading from a transport that is not closing."""
    transport.pause_reading()
    if hasattr(transport, "set_read_buffer_limits"):
        transport.set_read_buffer_limits(1, 0)


def resume_reading(transport: Any) -> None:
    """Continue to read from a transport that `pause_reading` has stopped and that is not closing."""
    transport.resume_reading()  # which passes on the received data in the next round of the event loop
    if hasattr(transport, "set_read_buffer_limits"):
        asyncio.get_running_loop().call_soon(_restore_limits, transport)


def _restore_limits(transport: Any) -> None:
    """Set the default limits, without which a part of a TLS record would stop the reading for good."""
    if transport.is_reading() and not transport.is_closing():
        transport.set_read_buffer_limits()
