"""`Strict-Transport-Security`, where `--strict-transport-security-directives` asks for it (upstream: server/filters/hsts.go)."""

from __future__ import annotations

from tetrapod.generic.request import Handler, Request, Response


def with_hsts(handler: Handler, directives: tuple[str, ...]) -> Handler:
    if not directives:
        return handler
    value = "; ".join(directives).encode()

    async def hsts(request: Request) -> Response:
        response = await handler(request)
        response.headers.append((b"strict-transport-security", value))
        return response

    return hsts
