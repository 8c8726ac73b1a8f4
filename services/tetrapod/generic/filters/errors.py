"""Turns a `StatusError` raised anywhere below into its answer, in the media type that the client accepts.

Upstream: endpoints/handlers/responsewriters (ErrorNegotiated). A bug (any other exception) becomes upstream's text 500 of
its panic filter, with the traceback in the log only.
"""

from __future__ import annotations

import asyncio
import logging

from tetrapod.generic.negotiation.documents import write_status
from tetrapod.generic.request import ClientGone, Handler, Request, Response
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)


def with_status_errors(handler: Handler) -> Handler:
    async def status_errors(request: Request) -> Response:
        try:
            return await handler(request)
        except StatusError as error:
            return write_status(request, error)
        except (asyncio.CancelledError, ClientGone):
            raise
        except Exception:
            log.exception("handler failed", extra={"audit-ID": request.audit_id, "method": request.method, "path": request.path})
            text = f"This request caused apiserver to panic. Look in the logs for details. (audit-ID: {request.audit_id})\n"
            return Response(500, [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")], text.encode())

    return status_errors
