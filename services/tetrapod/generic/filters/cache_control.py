"""Adds `Cache-Control: no-cache, private` to every response without a Cache-Control header.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/cachecontrol.go
"""

from __future__ import annotations

from tetrapod.generic.http.headers import NO_CACHE
from tetrapod.generic.http.request import Handler, Request, Response


def with_cache_control(handler: Handler) -> Handler:
    """Return a handler that adds `Cache-Control: no-cache, private` to responses without a Cache-Control header."""

    async def cache_control(request: Request) -> Response:
        response = await handler(request)
        for name, _ in response.headers:
            if name == b"cache-control":
                return response
        response.headers.append(NO_CACHE)
        return response

    return cache_control
