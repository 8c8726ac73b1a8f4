"""Filters that create audit events.

Events are created when a request is received, when a long response starts, when it completes, and on a panic. Their
contents are defined in generic/audit; endpoints add objects through `Request.audit`.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go, authn_audit.go; request_deadline.go,
withFailedRequestAudit
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.generic.audit.context import DECIDED_KEY, Audit, AuditContext
from tetrapod.generic.audit.metrics import REQUESTS_REJECTED_TOTAL
from tetrapod.generic.audit.policy import PANIC, REQUEST_RECEIVED, RESPONSE_STARTED
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.filters.plain_errors import internal_error
from tetrapod.generic.http.request import ClientGone, Handler, Request, Response, StreamResponse, UpgradeResponse
from tetrapod.machinery import status
from tetrapod.machinery.requestinfo import is_long_running
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

_EARLY: Final = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}
_OVERDUE: Final = "request did not complete within requested timeout - context deadline exceeded"


def with_audit(handler: Handler, audit: Audit) -> Handler:
    """Return a handler that writes the audit events of each request, as the audit policy says, and calls `handler`.

    The filter comes after authentication, because it needs the user, and before every filter that may reject the
    request. If the first event cannot be stored, the response is a 500.
    """
    latency = FilterLatency("audit")

    async def audited(request: Request) -> Response:
        started = time.monotonic()
        context = request.audit = audit.context(request, request.user)
        if context is None:
            latency.observe(time.monotonic() - started)
            return await handler(request)
        context.add_latency("authentication", request.received)  # nearly all time until here was authentication
        if not await context.stage(REQUEST_RECEIVED):
            REQUESTS_REJECTED_TOTAL.add()
            return internal_error(request, "failed to store audit event")
        latency.observe(time.monotonic() - started)
        return await _serve(handler, request, context)

    return audited


def with_rejection_audit(handler: Handler, audit: Audit) -> Handler:
    """Return a handler that writes an audit event for a request that `handler` rejects before it is authenticated.

    Such a request has invalid credentials or an invalid `?timeout`.
    """

    async def audited(request: Request) -> Response:
        try:
            return await handler(request)
        except StatusError as error:
            if DECIDED_KEY not in request.state and (context := audit.context(request, None)) is not None:
                context.record_status(error.to_status())
                await context.stage(RESPONSE_STARTED)
            raise

    return audited


async def _serve(handler: Handler, request: Request, context: AuditContext) -> Response:
    starts = is_long_running(request.info)
    try:
        with context.measured_store():
            response = await handler(request)
    except StatusError as error:
        context.record_status(error.to_status())
        await _finish(context, starts)
        raise
    except asyncio.CancelledError:
        overdue = request.deadline is not None and time.monotonic() >= request.deadline
        await _complete_aborted(context, starts, overdue)
        raise
    except ClientGone:
        await _complete_aborted(context, starts, False)
        raise
    except Exception as error:
        context.status = {
            "metadata": {},
            "status": "Failure",
            "message": f"APIServer panic'd: {error}",
            "reason": "InternalError",
            "code": 500,
        }
        await context.stage(PANIC)
        raise
    context.code(response.status)
    if isinstance(response, UpgradeResponse):
        response.run = _until_done(response.run, context, starts, "")
    elif isinstance(response, StreamResponse) and request.method != "HEAD":
        response.run = _until_done(response.run, context, starts, "" if response.endless else "response-write")
    else:
        await _finish(context, starts)
    return response


async def _complete_aborted(context: AuditContext, starts: bool, overdue: bool) -> None:
    """Write the last events of a request that has no response.

    The deadline passed (`overdue`), or the client disconnected. With `starts` the event ResponseStarted is written too.
    """
    if overdue:
        context.record_status(status.timeout(_OVERDUE).to_status())
    else:
        context.status = _EARLY
    await _finish(context, starts)


async def _finish(context: AuditContext, starts: bool) -> None:
    if starts:
        await context.stage(RESPONSE_STARTED)
    await context.complete()


def _until_done(
    run: Callable[[Any], Awaitable[None]], context: AuditContext, starts: bool, layer: str
) -> Callable[[Any], Awaitable[None]]:
    """Return `run` (the body of a StreamResponse or an upgrade) so that the last audit event is written when it ends.

    It is written for any end: success, an error or cancellation.

    Args:
        run: writes the body to a StreamWriter, or serves the upgraded connection, with which it is called.
        context: the audit context of the request.
        starts: whether the event ResponseStarted is written before `run`.
        layer: the layer whose latency is recorded; "" for none.
    """

    async def audited(to: Any) -> None:
        if starts:
            await context.stage(RESPONSE_STARTED)
        started = time.monotonic()
        try:
            await run(to)
        finally:
            if layer:
                context.add_latency(layer, started)
            await context.complete()

    return audited
