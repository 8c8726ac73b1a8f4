"""Parses the path of a request once for all later handlers.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/requestinfo.go
"""

from __future__ import annotations

from tetrapod.generic.filters.plain_errors import internal_error
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery import requestinfo


def with_request_info(handler: Handler) -> Handler:
    """Return a handler that sets `request.info`, or responds with a plain-text 500 if the target cannot be parsed."""

    async def request_info(request: Request) -> Response:
        try:
            request.info = requestinfo.parse(request.method, request.path, request.query_string, request.query)
        except ValueError as error:
            # Upstream responds with plain text here, before authentication and without Cache-Control.
            return internal_error(request, f"failed to create RequestInfo: {error}")
        return await handler(request)

    return request_info
