"""Sets the audit ID of each request: the client's `Audit-ID` header, or a new one.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit_init.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.observability.logs import AUDIT_ID
from tetrapod.machinery.random_bits import random_bits


def with_audit_id(handler: Handler) -> Handler:
    """Return a handler that sets `request.audit_id`, calls `handler`, and adds the Audit-ID header to the response.

    The id is that of the client's header, or else a new UUID.
    """

    async def audit_id(request: Request) -> Response:
        request.audit_id = request.header(b"audit-id") or new_audit_id()
        AUDIT_ID.set(request.audit_id)
        response = await handler(request)
        response.headers.append((b"audit-id", request.audit_id.encode("latin-1", "replace")))
        return response

    return audit_id


def new_audit_id() -> str:
    """Return a random UUID (version 4)."""
    text = f"{random_bits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANTS[text[16]]}{text[17:20]}-{text[20:]}"


_VARIANTS: Final = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
