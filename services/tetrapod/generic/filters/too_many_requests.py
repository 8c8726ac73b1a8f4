"""The answer to a request that there is no room for: a text, not a Status, as clients of all ages know it (upstream: tooManyRequests)."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.request import HeaderList, Response

_BODY: Final = b"Too many requests, please try again later.\n"


def too_many_requests(seconds: int) -> Response:
    """Come back in `seconds`."""
    headers: HeaderList = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"retry-after", str(seconds).encode()),
    ]
    return Response(429, headers, _BODY)
