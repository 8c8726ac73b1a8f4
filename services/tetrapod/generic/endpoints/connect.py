"""Subresources that answer with something else than an object (upstream: ConnectResource of handlers/rest.go).

Admission sees the query as the options of the connection (`PodExecOptions`), as operation CONNECT.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.endpoints.admitting import Admitting
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.negotiation.accept import MEDIA_TYPES, Offer
from tetrapod.generic.negotiation.choosing import check_route_accept, negotiate
from tetrapod.generic.request import Request, Response
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.requestinfo import query_lists, query_values
from tetrapod.machinery.status import bad_request


async def connect(scope: Scope, request: Request) -> Response:
    assert scope.rest is not None
    if "dryRun" in query_values(request.query_string):
        raise bad_request("dryRun is not supported")
    name = request_name(request)
    context = scope.context(request)
    path = "/".join(request_info(request).parts[3:])
    path = f"/{path}" if path else ""
    if scope.admission.handles("CONNECT"):
        admitting = Admitting(scope, request, context, name)
        options: Object = {"kind": scope.kind.kind, "apiVersion": scope.kind.api_version, **_options(request.query_string, path)}
        options = await admitting.mutate("CONNECT", options, None, {})
        await admitting.validate("CONNECT", options, None, {})
    return await scope.rest.connect(context, name, path, request)


_STREAMED: Final = ("text/plain", *MEDIA_TYPES)
_NO_TABLE: Final = Offer(table=False)
_is_port: Final = re.compile("[0-9]{1,5}", re.ASCII).fullmatch
_SWITCHES: Final = ("stdin", "stdout", "stderr", "tty")


def _options(query_string: str, path: str) -> Object:
    """What is asked for, as the options of exec, attach, portforward and proxy have it; each of them has its own of these."""
    query = query_lists(query_string)
    options: Object = {name: True for name in _SWITCHES if name in query and query[name][0].lower() not in ("false", "0")}
    if container := query.get("container"):
        options["container"] = container[0]
    if command := query.get("command"):
        options["command"] = command
    if ports := [int(port) for port in ",".join(query.get("ports") or ()).split(",") if _is_port(port)]:
        options["ports"] = ports
    if path:  # of a proxy, whose query is the backend's
        options = {"path": path}
    return options


async def stream(scope: Scope, request: Request) -> Response:
    """GET of a subresource that writes its own answer (log): no admission.

    Raises:
        StatusError: 406, even for the plain text that it writes, which upstream's route offers and its handler does not.
    """
    assert scope.rest is not None
    check_route_accept(request, _STREAMED)
    negotiate(request, _NO_TABLE)
    path = "/".join(request_info(request).parts[3:])
    return await scope.rest.connect(scope.context(request), request_name(request), f"/{path}" if path else "", request)
