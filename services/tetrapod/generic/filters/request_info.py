"""Takes the path apart once, for everything that follows (upstream: endpoints/filters/requestinfo.go)."""

from __future__ import annotations

from tetrapod.generic.filters.internal_error import internal_error
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery import requestinfo


def with_request_info(handler: Handler) -> Handler:
    async def request_info(request: Request) -> Response:
        try:
            request.info = requestinfo.parse(request.method, request.path, request.query_string)
        except ValueError as error:
            # Upstream answers plain text here, before authentication and without a Cache-Control.
            return internal_error(request, f"failed to create RequestInfo: {error}")
        return await handler(request)

    return request_info
