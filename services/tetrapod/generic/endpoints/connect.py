"""Subresources that answer with something else than an object (upstream: ConnectResource of handlers/rest.go).

Admission sees the query as the options of the connection (`PodExecOptions`), as operation CONNECT.
"""

from __future__ import annotations

from tetrapod.generic.endpoints.admitting import Admitting
from tetrapod.generic.endpoints.options import parse_query
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.request import Request, Response
from tetrapod.machinery.gvk import Object


async def connect(scope: Scope, request: Request) -> Response:
    assert scope.rest is not None
    name = request_name(request)
    context = scope.context(request)
    if scope.admission.handles("CONNECT"):
        admitting = Admitting(scope, request, context, name)
        options: Object = {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, **parse_query(request.query_string)}
        options = await admitting.mutate("CONNECT", options, None, {})
        await admitting.validate("CONNECT", options, None, {})
    path = "/".join(request_info(request).parts[3:])
    return await scope.rest.connect(context, name, f"/{path}" if path else "", request)


async def stream(scope: Scope, request: Request) -> Response:
    """GET of a subresource that writes its own answer (log): no admission."""
    assert scope.rest is not None
    path = "/".join(request_info(request).parts[3:])
    return await scope.rest.connect(scope.context(request), request_name(request), f"/{path}" if path else "", request)
