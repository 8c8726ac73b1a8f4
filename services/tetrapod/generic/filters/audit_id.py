"""Names each request: `Audit-ID` as the client sent it (shortened as upstream does), or a new one.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/audit_init.go.
"""

from __future__ import annotations

import uuid
from typing import Final

from tetrapod.generic.request import Handler, Request, Response

_MAX_LENGTH: Final = 64


def with_audit_id(handler: Handler) -> Handler:
    async def audit_id(request: Request) -> Response:
        request.audit_id = request.header(b"audit-id")[:_MAX_LENGTH] or str(uuid.uuid4())
        response = await handler(request)
        response.headers.append((b"audit-id", request.audit_id.encode("latin-1", "replace")))
        return response

    return audit_id
