"""Queues requests by priority level and flow.

A watch occupies its seats until it has started, a list until its response is made: the bytes are shared with the
watch cache, so a slow client costs hardly any CPU or memory. Long-running requests other than watches are not
limited.
Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.generic.filters import access_log
from tetrapod.generic.filters.fair_scheduling import scheduled_stream
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.filters.plain_errors import too_many_requests
from tetrapod.generic.flowcontrol import metrics
from tetrapod.generic.flowcontrol.controller import Flow, FlowControl
from tetrapod.generic.flowcontrol.flow_limit import FlowLimiter, InFlight
from tetrapod.generic.flowcontrol.queue import Ticket
from tetrapod.generic.flowcontrol.queueset import QueueSet
from tetrapod.generic.flowcontrol.work_estimator import LEAST, MUTATING, Estimate, estimate
from tetrapod.generic.http.request import Handler, Request, Response, StreamResponse, UpgradeResponse
from tetrapod.generic.observability.request_metrics import IN_QUEUE, kind_of
from tetrapod.machinery.requestinfo import RequestInfo, is_long_running
from tetrapod.machinery.status import StatusError

_LONGEST_WAIT: Final = 60.0


def with_priority_and_fairness(handler: Handler, control: FlowControl, request_timeout: float) -> Handler:
    """Return a handler that executes, queues or rejects requests as API priority and fairness decides.

    Rejections are responses with 429. Long-running requests other than watches are passed on without a decision. A
    request occupies seats until `handler` returns, not while a stream such as a watch is written afterwards.

    Args:
        handler: the next handler.
        control: the flow schemas and priority levels.
        request_timeout: the timeout of requests without a deadline, in seconds; a quarter of it limits the queuing.
    """
    clock = time.monotonic
    scheduler, limiter, weight_of = control.scheduler, control.limiter, control.weight_of
    latency = FilterLatency("priorityandfairness")

    async def priority_and_fairness(request: Request) -> Response:
        info = request.info
        if info is None or (info.verb != "watch" and is_long_running(info)):
            latency.passed()
            return await handler(request)
        flow = control.classify(request.user, info)
        queues = flow.level.queues
        work = _estimate(control, flow, request, info)
        ticket = queues.start(work, flow.hand, flow.labels, flow.distinguisher, request.user, info)
        if ticket is None or (
            ticket.decision is not None and not await _wait_in_queue(queues, ticket, request, request_timeout)
        ):
            return _reject(flow)
        if ticket.decision is None and not flow.exempt:
            # requests that need not wait are counted too, as upstream
            metrics.WAIT.observe((*ticket.labels, "true"), 0.0)
        in_flight: InFlight | None = None
        unregister = control.watches.add(request) if info.verb == "watch" and info.is_resource_request else None
        try:
            if not flow.exempt:
                if weight := weight_of(info.verb):
                    in_flight = limiter.enter(flow.key, weight) or await limiter.wait(flow.key, weight)
                if not scheduler.try_start(flow.key):
                    await scheduler.wait(flow.key)
            latency.observe(clock() - ticket.arrival)
            if unregister is not None:
                access_log.add_duration(request, "apf_init_latency", clock() - ticket.arrival)
            response = await (handler(request) if flow.exempt else scheduler.run(flow.key, handler(request)))
        except BaseException as error:
            _release(limiter, in_flight, unregister)
            if isinstance(error, StatusError):
                error.headers.extend(flow.headers)
            raise
        finally:
            executed = queues.finish(ticket)
            metrics.EXECUTION.count(flow.execution, executed)
            access_log.add_duration(request, "apf_execution_time", executed)
        response.headers = [*response.headers, *flow.headers]
        if unregister is not None:
            _call_when_ended(response, unregister)
        elif isinstance(response, StreamResponse) and not flow.exempt:
            response.run = scheduled_stream(response.run, scheduler, flow.key)
        if in_flight is not None:
            limiter.leave_after(response, in_flight)
        return response

    return priority_and_fairness


def _estimate(control: FlowControl, flow: Flow, request: Request, info: RequestInfo) -> Estimate:
    """Return the seats that a request needs, and record them in the metrics and the access log."""
    work = (
        LEAST if info.verb == "get" else estimate(request, info, flow.level.most_seats, control.stats, control.watches)
    )
    metrics.SEATS.count(flow.seats, work.seats)
    if access_log.is_enabled():
        access_log.add_flow(request, flow, work)
    if info.verb in MUTATING:
        metrics.WATCHERS.observe(flow.labels, control.watches.interested(info))
    return work


async def _wait_in_queue(queues: QueueSet, ticket: Ticket, request: Request, request_timeout: float) -> bool:
    started = time.monotonic()
    kind = kind_of(request)
    IN_QUEUE.add(kind, 1)
    try:
        executes = await queues.wait(ticket, _queue_timeout(request, request_timeout))
    finally:
        IN_QUEUE.add(kind, -1)
        if request.audit is not None:
            request.audit.add_latency("apf-queue-wait", ticket.arrival, at_once=True)
    request.excluded_seconds += time.monotonic() - started
    metrics.WAIT.observe((*ticket.labels, "true" if executes else "false"), time.monotonic() - ticket.arrival)
    return executes


def _queue_timeout(request: Request, request_timeout: float) -> float:
    """Return the seconds for which the request may still be queued.

    A request may be queued for a quarter of its timeout, at most 60 seconds, counted from its arrival.
    `request_timeout` is the timeout in seconds of a request without a deadline.
    """
    now = time.monotonic()
    allotted = request.deadline - request.received if request.deadline is not None else request_timeout
    return request.received + min(allotted / 4, _LONGEST_WAIT) - now


def _reject(flow: Flow) -> Response:
    retry = flow.level.retry_after
    retry.count_rejection()
    response = too_many_requests(retry.seconds)
    response.headers += flow.headers
    return response


def _release(limiter: FlowLimiter, in_flight: InFlight | None, unregister: Callable[[], None] | None) -> None:
    """End the counting of a request that failed: as one in flight of its flow, and as a watch."""
    if unregister is not None:
        unregister()
    if in_flight is not None:
        limiter.leave(in_flight)


def _call_when_ended(response: Response, callback: Callable[[], None]) -> None:
    if not isinstance(response, (StreamResponse, UpgradeResponse)):
        callback()
        return
    run: Callable[[Any], Awaitable[None]] = response.run

    async def run_and_call(connection: Any) -> None:
        await run(connection)

    # Called when the wrapper is freed, because `run` never runs if the client disconnects before the stream starts.
    weakref.finalize(run_and_call, callback).atexit = False
    response.run = run_and_call
