"""Error responses of filters in plain text instead of a Status."""

from __future__ import annotations

from tetrapod.generic.http.error_responses import http_error
from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery.golang.quoting import go_quote


def internal_error(request: Request, text: str) -> Response:
    """Return a plain-text 500 that quotes the URL: `Internal Server Error: "URL": TEXT`.

    Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, InternalError.
    """
    target = request.raw_path + (f"?{request.query_string}" if request.query_string else "")
    return http_error(500, _escaped(f"Internal Server Error: {go_quote(target)}: {text}"))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def too_many_requests(seconds: int) -> Response:
    """Return a plain-text 429 with a Retry-After header of this many seconds.

    Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, tooManyRequests.
    """
    response = http_error(429, "Too many requests, please try again later.")
    response.headers.append((b"retry-after", str(seconds).encode()))
    return response
