"""Names and attributes of requests in traces.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/trace_util.go, and the spans of the handlers
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.endpoints.scope import Scope, request_info
from tetrapod.generic.http.request import Request
from tetrapod.generic.observability.tracing.spans import current
from tetrapod.machinery.requestinfo import scope_of

_SPANS: Final = {
    "get": "Get",
    "list": "List",
    "watch": "Watch",
    "create": "Create",
    "update": "Update",
    "patch": "Patch",
    "delete": "Delete",
    "deletecollection": "Delete",
}
STORING: Final = ("About to store object in database", "Write to database call succeeded")
"""The names of the events before and after the write of a create or an update."""
_VERBS: Final = {"list": "LIST", "watch": "WATCH"}


def span_of(verb: object, scope: Scope, request: Request) -> str:
    """Return the name of the request's span ("Get", "List", …); the HTTP method for other verbs.

    The parameters are those of the traced function (handler.py); `verb` and `scope` are not used.
    """
    info = request_info(request)
    if info.verb == "watch" and "sendInitialEvents=true" in request.query_string:
        return "WatchList"
    return _SPANS.get(info.verb, request.method)


def span_attributes(verb: object, scope: Scope, request: Request) -> dict[str, Any]:
    """Return the attributes of the request's span, with upstream's names, and keep those that other spans repeat.

    The parameters are those of the traced function (handler.py); `verb` and `scope` are not used.
    """
    info = request_info(request)
    protocol = f"HTTP/{request.http_version}"
    if (span := current()) is not None:
        span.trace.request = {
            "audit-id": request.audit_id,
            "method": request.method,
            "url": request.path,
            "protocol": protocol,
        }
    return {
        "accept": request.header(b"accept"),
        "audit-id": request.audit_id,
        "client": request.remote,
        "api-group": info.api_group,
        "api-version": info.api_version,
        "name": info.name,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "protocol": protocol,
        "resource": info.resource,
        "scope": scope_of(info),
        "url": request.path,
        "user-agent": request.header(b"user-agent"),
        "verb": _VERBS.get(info.verb, request.method),
    }
