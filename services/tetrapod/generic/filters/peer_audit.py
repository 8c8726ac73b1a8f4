"""The filter that returns audit data to the front proxy, which writes the audit events (audit/peer_audit.py).

A peer service alone has some of the data: the objects of the request and the response, and audit annotations.
"""

from __future__ import annotations

from tetrapod.generic.http.peers import AUDIT_STATE_KEY
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.status import StatusError


def with_audit_findings(handler: Handler) -> Handler:
    """Return a handler that collects the audit data which the front proxy requested, and adds it to response headers.

    Requests for which it requested none are passed on as they are.
    """

    async def audit_findings(request: Request) -> Response:
        requested = request.state.get(AUDIT_STATE_KEY)
        if requested is None:
            return await handler(request)
        from tetrapod.generic.audit.context import AuditContext
        from tetrapod.generic.audit.peer_audit import parse_request_header, response_header

        auditing = parse_request_header(requested)
        if auditing is None or request.audit is not None:
            return await handler(request)
        context = request.audit = AuditContext(request, auditing, None, None)
        try:
            response = await handler(request)
        except StatusError as error:
            context.record_status(error.to_status())
            error.headers.extend(await response_header(context))
            raise
        response.headers.extend(await response_header(context))
        return response

    return audit_findings
