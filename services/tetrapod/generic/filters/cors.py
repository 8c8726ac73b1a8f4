"""CORS for the origins that match the regular expressions of `--cors-allowed-origins`. Off by default.

Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/cors.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Handler, HeaderList, Request, Response
from tetrapod.machinery.golang.regular_expressions import compile_pattern
from tetrapod.machinery.status import StatusError

_METHODS: Final = b"POST, GET, OPTIONS, PUT, DELETE, PATCH"
_HEADERS: Final = (
    b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
_EXPOSED: Final = b"Date"


def with_cors(handler: Handler, allowed_origins: tuple[str, ...]) -> Handler:
    """Return a handler that answers preflight requests of allowed origins, and adds CORS headers to their responses.

    Args:
        handler: the next handler. It is returned itself if `allowed_origins` is empty.
        allowed_origins: regular expressions; one of them must match a part of the Origin header.
    """
    if not allowed_origins:
        return handler
    patterns = [compile_pattern(pattern) for pattern in allowed_origins]

    async def cors(request: Request) -> Response:
        origin = request.header(b"origin")
        if not origin or not any(pattern.search(origin) for pattern in patterns):
            return await handler(request)
        headers: HeaderList = [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _HEADERS),
            (b"access-control-expose-headers", _EXPOSED),
            (b"access-control-allow-credentials", b"true"),
        ]
        if request.method == "OPTIONS":
            return Response(204, headers)
        try:
            response = await handler(request)
        except StatusError as error:  # a browser hides rejections without these headers from its page
            error.headers.extend(headers)
            raise
        response.headers.extend(headers)
        return response

    return cors
