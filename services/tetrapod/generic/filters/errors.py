"""Converts exceptions to responses.

- A `StatusError` becomes a Status in the media type that the client accepts (upstream:
  endpoints/handlers/responsewriters, ErrorNegotiated).
- A request that exhausts Python's stack or memory becomes a Status 500 and one log line, because its traceback has
  thousands of lines.
- Any other exception is a bug: the response is the text of upstream's panic filter with status 500, and the traceback
  is only logged.
"""

from __future__ import annotations

import asyncio
import logging

from tetrapod.generic.http.error_responses import http_error
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.request import ClientGone, Handler, Request, Response
from tetrapod.machinery.depth import is_depth_error
from tetrapod.machinery.status import StatusError, internal_error

log = logging.getLogger(__name__)


def exhaustion(error: Exception) -> StatusError | None:
    """Return the StatusError 500 for an exception that means exhausted stack or memory; None for any other exception.

    This is a last resort: depth is limited where values are decoded and patched (machinery/depth.py).
    """
    if is_depth_error(error):
        return internal_error("the request nests too deeply")
    return internal_error("the request needs too much memory") if isinstance(error, MemoryError) else None


def with_status_errors(handler: Handler) -> Handler:
    """Return a handler that converts the exceptions of `handler` to responses, except cancellation and ClientGone."""

    async def status_errors(request: Request) -> Response:
        try:
            return await handler(request)
        except StatusError as error:
            response = write_status(request, error)
            # An error that crossed a thread is in a reference cycle with its frames, which hold the request and its
            # objects. Without this, 2 MB of bad keys occupied 13 MB until the garbage collector found them.
            error.__traceback__ = error.__context__ = None
            return response
        except (asyncio.CancelledError, ClientGone):
            raise
        except Exception as error:
            if (exhausted := exhaustion(error)) is not None:
                log.error("%s %s failed: %s", request.method, request.path[:1000], exhausted.message)
                return write_status(request, exhausted)
            log.exception(
                "handler failed", extra={"audit-ID": request.audit_id, "method": request.method, "path": request.path}
            )
            return http_error(
                500,
                f"This request caused apiserver to panic. Look in the logs for details. (audit-ID: {request.audit_id})",
            )

    return status_errors
