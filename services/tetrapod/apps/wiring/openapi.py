"""The OpenAPI endpoints of a server."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.server.routes import Routes

if TYPE_CHECKING:
    from tetrapod.generic.openapi.handlers import OpenAPIHandlers


def install_openapi(routes: Routes, source: DocumentSource, *, behind: bool = False) -> None:
    """Add the OpenAPI endpoints to the routes.

    Args:
        routes: the routes of a server.
        source: the documents.
        behind: whether the server is behind the aggregator, which requests its documents in parts.
    """

    @cache
    def handlers() -> OpenAPIHandlers:
        from tetrapod.generic.openapi.handlers import OpenAPIHandlers  # at the first request: 5 % of all imports

        return OpenAPIHandlers(source, behind=behind)

    async def index(request: Request) -> Response:
        return await handlers().index(request)

    async def document(request: Request) -> Response:
        return await handlers().document(request)

    async def v2(request: Request) -> Response:
        return await handlers().v2(request)

    routes.add("/openapi/v3", index)
    routes.add_prefix("/openapi/v3/", document, listed=True)
    routes.add("/openapi/v2", v2)
