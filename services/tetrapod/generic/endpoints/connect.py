"""Subresources that do not respond with an object.

Admission gets the query as the connection's options object (`PodExecOptions`), with operation CONNECT.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, ConnectResource
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.http.negotiation.accept import MEDIA_TYPES, Offer
from tetrapod.generic.http.negotiation.media_types import check_route_accept, negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.websocket import is_websocket_request
from tetrapod.generic.http.websocket_stream import reader_handshake, serve_bytes
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


async def connect(scope: Scope, request: Request) -> Response:
    """Run admission for the connection with operation CONNECT, and pass the request to the subresource's handler.

    Raises:
        StatusError: 400 for a dry run, or the rejection of a plugin.
    """
    assert scope.rest is not None
    if "dryRun" in request.query().values:
        raise bad_request("dryRun is not supported")
    name = request_name(request)
    context = scope.context(request)
    path = "/".join(request_info(request).parts[3:])
    path = f"/{path}" if path else ""
    if scope.admission.handles("CONNECT"):
        admission = RequestAdmission(scope, request, context, name)
        options: Object = {
            "kind": scope.kind.kind,
            "apiVersion": scope.kind.api_version,
            **_options(request.query().lists, path),
        }
        options = await admission.mutate("CONNECT", options, None, {})
        await admission.validate("CONNECT", options, None, {})
    return await scope.rest.connect(context, name, path, request)


_STREAMED: Final = ("text/plain", *MEDIA_TYPES)
_NO_TABLE: Final = Offer(table=False)
_is_port: Final = re.compile("[0-9]{1,5}", re.ASCII).fullmatch
_SWITCHES: Final = ("stdin", "stdout", "stderr", "tty")


def _options(query: dict[str, list[str]], path: str) -> Object:
    """Return the fields of the options object of exec, attach, portforward or proxy.

    Each of the kinds has a subset of these fields.

    Args:
        path: the path below the subresource; if there is one, the request is a proxy's, and its query is ignored.
    """
    options: Object = {
        name: True for name in _SWITCHES if name in query and query[name][0].lower() not in ("false", "0")
    }
    if container := query.get("container"):
        options["container"] = container[0]
    if command := query.get("command"):
        options["command"] = command
    if ports := [int(port) for port in ",".join(query.get("ports") or ()).split(",") if _is_port(port)]:
        options["ports"] = ports
    if path:  # a proxy: the query belongs to the backend
        options = {"path": path}
    return options


async def stream(scope: Scope, request: Request) -> Response:
    """Serve a GET of a subresource that writes its own response (log), without admission.

    The response is sent over WebSocket if the client requests it.

    Raises:
        StatusError: 406 if the client accepts none of the offered types, and even for text/plain: upstream's route
            offers it but its handler does not.

    Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, StreamObject
    """
    assert scope.rest is not None
    check_route_accept(request, _STREAMED)
    negotiate(request, _NO_TABLE)
    websocket = request.upgrade is not None and is_websocket_request(request.headers)
    handshake = reader_handshake(request) if websocket else None
    if isinstance(handshake, Response):
        return handshake
    path = "/".join(request_info(request).parts[3:])
    response = await scope.rest.connect(
        scope.context(request), request_name(request), f"/{path}" if path else "", request
    )
    return response if handshake is None or response.status != 200 else serve_bytes(handshake, response)
