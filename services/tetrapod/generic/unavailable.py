"""What every caller of a store or of another service must be ready for."""

from __future__ import annotations

from typing import Final

RETRY_SECONDS: Final = 1
"""After which a client asks again whose request nobody has begun; as a server that stops says (upstream: filters/with_retry_after.go)."""


class Unavailable(Exception):
    """The store, or the server that was asked, did not answer, or not in time; whether a write took effect is unknown."""
