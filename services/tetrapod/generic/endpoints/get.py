"""GET of one object (upstream: handlers/get.go)."""

from __future__ import annotations

from tetrapod.generic.endpoints.negotiation import negotiate
from tetrapod.generic.endpoints.options import parse_query
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.request import Request, Response


async def get(scope: Scope, request: Request) -> Response:
    accepted = negotiate(request, scope.offer)
    context = scope.context(request)
    name = request_name(request)
    if scope.rest is not None:
        return scope.representation.object(await scope.rest.get(context, name), accepted)
    version = parse_query(request.query_string).get("resourceVersion", "") if request.query_string else ""
    entry = await scope.store.get(context, name, version)
    return await scope.representation.entry(entry, accepted)
