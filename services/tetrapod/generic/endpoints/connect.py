"""Subresources that do not respond with an object.

Admission gets the query as the connection's options object (`PodExecOptions`), with operation CONNECT. The subresource
is served with the options that mutating plugins return.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, ConnectResource
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.http.negotiation.accept import MEDIA_TYPES, Offer, with_cbor
from tetrapod.generic.http.negotiation.media_types import check_route_accept, negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.websocket import is_websocket_request
from tetrapod.generic.http.websocket_stream import reader_handshake, serve_bytes
from tetrapod.machinery.status import bad_request
from tetrapod.machinery.types.connect_options import connect_options


async def connect(scope: Scope, request: Request) -> Response:
    """Run admission for the connection with operation CONNECT, and pass the request to the subresource's handler.

    Raises:
        StatusError: 400 for a dry run or an invalid query, or the rejection of a plugin.
    """
    assert scope.rest is not None
    if "dryRun" in request.query().values:
        raise bad_request("dryRun is not supported")
    name = request_name(request)
    context = scope.context(request)
    try:
        options = connect_options(scope.kind, request.query().lists, _path(request))
    except ValueError as error:
        raise bad_request(str(error)) from None
    if scope.admission.handles("CONNECT"):
        admission = RequestAdmission(scope, request, context, name)
        options = await admission.mutate("CONNECT", options, None, {})
        await admission.validate("CONNECT", options, None, {})
    return await scope.rest.connect(context, name, options, request)


def _path(request: Request) -> str:
    """Return the path below the subresource, with a leading slash, or "" for the subresource itself.

    Upstream: getRequestOptions.
    """
    path = "/".join(request_info(request).parts[3:])
    path = f"/{path}" if path else ""
    return f"{path}/" if request.path.endswith("/") and not path.endswith("/") else path


_NO_TABLE: Final = Offer(table=False)


async def stream(scope: Scope, request: Request) -> Response:
    """Serve a GET of a subresource that writes its own response (log), without admission.

    The response is sent over WebSocket if the client requests it.

    Raises:
        StatusError: 406 if the client accepts none of the offered types, and even for text/plain: upstream's route
            offers it but its handler does not.

    Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, StreamObject
    """
    assert scope.rest is not None
    check_route_accept(request, ("text/plain", *with_cbor(MEDIA_TYPES)))
    negotiate(request, _NO_TABLE)
    websocket = request.upgrade is not None and is_websocket_request(request.headers)
    handshake = reader_handshake(request) if websocket else None
    if isinstance(handshake, Response):
        return handshake
    response = await scope.rest.connect(scope.context(request), request_name(request), {}, request)
    return response if handshake is None or response.status != 200 else serve_bytes(handshake, response)
