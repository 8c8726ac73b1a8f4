"""Counts and times every request (observability/request_metrics.py) and logs it (access_log.py).

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/metrics, pkg/server/httplog
"""

from __future__ import annotations

import asyncio
import time
import weakref
from typing import Any

from tetrapod.generic.filters import access_log
from tetrapod.generic.http.request import Handler, Request, Response, StreamResponse, UpgradeResponse
from tetrapod.generic.observability.request_metrics import (
    ABORTS,
    FIELD_VALIDATION,
    LONG_RUNNING,
    RequestMetrics,
    Series,
    field_validation_of,
    in_flight,
    verb_of,
)
from tetrapod.machinery.requestinfo import is_long_running
from tetrapod.machinery.user import LOOPBACK

_VALIDATED = frozenset({"POST", "PUT", "PATCH"})


def with_instrumentation(handler: Handler, component: str) -> Handler:
    """Return a handler that counts, times and logs every request. `component` is a label of the metrics.

    A long-running request is counted when its stream ends.
    """
    metrics = RequestMetrics(component)

    async def instrumentation(request: Request) -> Response:
        info = request.info
        in_flight_row = in_flight(request)
        in_flight_row[0] += 1
        code, size = 0, -1
        response: Response | None = None
        try:
            response = await handler(request)
            code = response.status
            if type(response) is Response:
                size = len(response.body)
            return response
        except asyncio.CancelledError:
            reached = request.served and info is not None and info.is_resource_request
            ABORTS.add(metrics.labels(request)[:-1] if reached else (verb_of(request), "", "", "", "", ""))
            raise
        finally:
            seconds = time.monotonic() - request.received
            log_fields = access_log.request_fields(request) if access_log.is_enabled() else None
            in_flight_row[0] -= 1
            if code == 429:
                metrics.dropped(request)
            elif (series := metrics.series(request)) is not None:
                if is_long_running(info) and isinstance(response, (StreamResponse, UpgradeResponse)):
                    _count_when_ended(request, response, series, metrics.labels(request), log_fields)
                    log_fields = None
                else:
                    series.count(code, seconds, seconds - request.excluded_seconds, size)
                if request.user.name == LOOPBACK.name:
                    series.count_self()
                if request.method in _VALIDATED:
                    FIELD_VALIDATION.observe((field_validation_of(request.query()),), seconds)
            if log_fields is not None:
                access_log.log(log_fields, code, seconds)

    return instrumentation


def _count_when_ended(
    request: Request,
    response: StreamResponse | UpgradeResponse,
    series: Series,
    labels: tuple[str, ...],
    log_fields: dict[str, Any] | None,
) -> None:
    """Wrap `response.run` so that a long-running request is counted and logged when it has ended for any reason.

    Until then it counts as a running long-running request.

    Args:
        request: the request.
        response: its response.
        series: the series in which it is counted at the end.
        labels: the labels under which it counts as running.
        log_fields: the fields of its line in the access log; None to write no line.
    """
    run, code, started = response.run, response.status, request.received
    running = LONG_RUNNING.row(labels)
    running[0] += 1

    async def run_long(writer: Any) -> None:
        await run(writer)

    def ended() -> None:
        running[0] -= 1
        seconds = time.monotonic() - started
        series.count(code, seconds, seconds, -1)
        if log_fields is not None:
            access_log.log(log_fields, code, seconds)

    # Called when the wrapper is freed, because `run` never runs if the client disconnects before the stream starts.
    weakref.finalize(run_long, ended).atexit = False
    response.run = run_long
