"""The exception for a store or service that does not respond."""

from __future__ import annotations

from typing import Final

RETRY_SECONDS: Final = 1
"""Seconds in the Retry-After of requests that were not started, as of a server that stops (upstream:
filters/with_retry_after.go).
"""


class Unavailable(Exception):
    """The store or service did not respond, or not in time; whether a write took effect is unknown."""
