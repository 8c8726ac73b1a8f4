"""Puts the OpenAPI endpoints of one source into a server's routes."""

from __future__ import annotations

from tetrapod.generic.openapi.handlers import OpenAPIHandlers
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.routes import Routes


def install_openapi(routes: Routes, source: DocumentSource, *, behind: bool = False) -> None:
    """`behind`: the server stands behind the aggregator, which takes its documents over."""
    handlers = OpenAPIHandlers(source, behind=behind)
    routes.add("/openapi/v3", handlers.index)
    routes.add_prefix("/openapi/v3/", handlers.document, listed=True)
    routes.add("/openapi/v2", handlers.v2)
