"""Adds `Strict-Transport-Security` if `--strict-transport-security-directives` is set.

Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/hsts.go
"""

from __future__ import annotations

from tetrapod.generic.http.request import Handler, Request, Response


def with_hsts(handler: Handler, directives: tuple[str, ...]) -> Handler:
    """Return a handler that adds Strict-Transport-Security to all responses; `handler` itself without directives."""
    if not directives:
        return handler
    value = "; ".join(directives).encode()

    async def hsts(request: Request) -> Response:
        response = await handler(request)
        response.headers.append((b"strict-transport-security", value))
        return response

    return hsts
