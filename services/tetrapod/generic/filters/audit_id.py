"""Sets the audit ID of each request: the client's `Audit-ID` header, or a new one.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit_init.go
"""

from __future__ import annotations

from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.observability.logs import AUDIT_ID
from tetrapod.machinery.random_bits import random_bits
from tetrapod.machinery.uids import uuid_text


def with_audit_id(handler: Handler) -> Handler:
    """Return a handler that sets `request.audit_id`, calls `handler`, and adds the Audit-ID header to the response.

    The id is that of the client's header, or else a new UUID.
    """

    async def audit_id(request: Request) -> Response:
        if request.head is None:  # else the HTTP server has set it
            request.audit_id = request.header(b"audit-id")
        request.audit_id = request.audit_id or new_audit_id()
        AUDIT_ID.set(request.audit_id)
        response = await handler(request)
        response.headers.append((b"audit-id", request.audit_id.encode("latin-1", "replace")))
        return response

    return audit_id


def new_audit_id() -> str:
    """Return a random UUID (version 4)."""
    return uuid_text(f"{random_bits(128):032x}")
