"""GET of one object.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go
"""

from __future__ import annotations

from collections.abc import Mapping

from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.http.negotiation.media_types import negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.machinery.golang.booleans import query_bool
from tetrapod.machinery.status import bad_request


async def get(scope: Scope, request: Request) -> Response:
    """Serve a GET of an object.

    Raises:
        StatusError: 404 if it does not exist, 406 if its response type is not acceptable.
    """
    accepted = negotiate(request, scope.offer)
    context = scope.context(request)
    name = request_name(request)
    version = _read_options(request.query().values) if request.query_string else ""
    current_span().event("About to Get from storage")
    if scope.rest is not None:
        return scope.representation.object(await scope.rest.get_at_version(context, name, version), accepted)
    entry = await scope.store.get(context, name, version)
    return await scope.representation.entry(entry, accepted)


def _read_options(query: Mapping[str, str]) -> str:
    """Return the resourceVersion parameter, "" if it is not set.

    Raises:
        StatusError: 400 for `export`, which upstream has removed.
    """
    if "export" in query and query_bool(query["export"]):
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    return query.get("resourceVersion", "")
