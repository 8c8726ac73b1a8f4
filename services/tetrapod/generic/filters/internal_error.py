"""The plain-text 500 of filters, which quotes the request's URL.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, InternalError
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery.golang.quoting import go_quote

_HEADERS: Final = ((b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff"))


def internal_error(request: Request, text: str) -> Response:
    """Return a plain-text 500: `Internal Server Error: "URL": TEXT`."""
    target = request.raw_path + (f"?{request.query_string}" if request.query_string else "")
    return Response(
        500, list(_HEADERS), (_escaped(f"Internal Server Error: {go_quote(target)}: {text}") + "\n").encode()
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
