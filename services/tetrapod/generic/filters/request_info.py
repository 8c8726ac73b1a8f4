"""Takes the path apart once, for everything that follows (upstream: endpoints/filters/requestinfo.go)."""

from __future__ import annotations

from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery import requestinfo

_NOSNIFF = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]


def with_request_info(handler: Handler) -> Handler:
    async def request_info(request: Request) -> Response:
        try:
            request.info = requestinfo.parse(request.method, request.path, request.query_string)
        except ValueError as error:
            # Upstream answers plain text here, before authentication and without a Cache-Control.
            text = f'Internal Server Error: "{_escaped(_target(request))}": failed to create RequestInfo: {_escaped(str(error))}\n'
            return Response(500, list(_NOSNIFF), text.encode())
        return await handler(request)

    return request_info


def _target(request: Request) -> str:
    return request.raw_path + (f"?{request.query_string}" if request.query_string else "")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
