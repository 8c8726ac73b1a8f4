"""Error responses of filters in plain text instead of a Status."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.machinery.golang.quoting import go_quote

_HEADERS: Final = (TEXT_TYPE, NOSNIFF)
_BODY: Final = b"Too many requests, please try again later.\n"


def internal_error(request: Request, text: str) -> Response:
    """Return a plain-text 500 that quotes the URL: `Internal Server Error: "URL": TEXT`.

    Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, InternalError.
    """
    target = request.raw_path + (f"?{request.query_string}" if request.query_string else "")
    return Response(
        500, list(_HEADERS), (_escaped(f"Internal Server Error: {go_quote(target)}: {text}") + "\n").encode()
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def too_many_requests(seconds: int) -> Response:
    """Return a plain-text 429 with a Retry-After header of this many seconds.

    Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, tooManyRequests.
    """
    headers: HeaderList = [
        *_HEADERS,
        (b"retry-after", str(seconds).encode()),
    ]
    return Response(429, headers, _BODY)
