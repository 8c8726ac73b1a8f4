"""Parses the path of a request once for all later handlers.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/requestinfo.go
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tetrapod.generic.filters.plain_errors import internal_error
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery import requestinfo


def with_request_info(handler: Handler) -> Handler:
    """Return a handler that sets `request.info`, or responds with a plain-text 500 if the target cannot be parsed."""

    # Not a coroutine: it would be resumed in vain whenever the request has waited for something.
    def request_info(request: Request) -> Coroutine[Any, Any, Response]:
        try:
            request.info = requestinfo.parse(request.method, request.path, request.query_string, request.query)
        except ValueError as error:
            return _failed(request, str(error))
        return handler(request)

    return request_info


async def _failed(request: Request, error: str) -> Response:
    # Upstream responds with plain text here, before authentication and without Cache-Control.
    return internal_error(request, f"failed to create RequestInfo: {error}")
