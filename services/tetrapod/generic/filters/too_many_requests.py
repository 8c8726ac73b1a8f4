"""The 429 response: plain text instead of a Status, for compatibility with old clients.

Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, tooManyRequests
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import HeaderList, Response

_BODY: Final = b"Too many requests, please try again later.\n"


def too_many_requests(seconds: int) -> Response:
    """Return a plain-text 429 with a Retry-After header of this many seconds."""
    headers: HeaderList = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"retry-after", str(seconds).encode()),
    ]
    return Response(429, headers, _BODY)
