"""Requests take their turns by priority level and flow (upstream: server/filters/priority-and-fairness.go).

A watch holds its seats until it has begun, a list until its answer is made: its bytes are shared with the watch cache, so that a client
that reads slowly costs neither CPU nor memory to speak of. Long-running requests other than watches are not held up.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Final

from tetrapod.generic.filters import access_log
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.filters.too_many_requests import too_many_requests
from tetrapod.generic.filters.turns import stream_in_turn
from tetrapod.generic.flowcontrol import meters
from tetrapod.generic.flowcontrol.controller import Flow, FlowControl
from tetrapod.generic.flowcontrol.pace import Sent
from tetrapod.generic.flowcontrol.queueset import QueueSet, Ticket
from tetrapod.generic.flowcontrol.work import LEAST, MUTATING, estimate
from tetrapod.generic.request import Handler, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.request_metrics import IN_QUEUE, kind_of
from tetrapod.machinery.requestinfo import is_long_running
from tetrapod.machinery.status import StatusError

_LONGEST_WAIT: Final = 60.0


def with_priority_and_fairness(handler: Handler, control: FlowControl, request_timeout: float) -> Handler:
    clock = time.monotonic

    turns, pace, weight_of = control.turns, control.pace, control.weight_of
    latency = FilterLatency("priorityandfairness")

    async def priority_and_fairness(request: Request) -> Response:
        info = request.info
        if info is None or (info.verb != "watch" and is_long_running(info)):
            latency.passed()
            return await handler(request)
        flow = control.classify(request.user, info)
        queues = flow.level.queues
        work = LEAST if info.verb == "get" else estimate(request, info, flow.level.most_seats, control.stats, control.watches)
        meters.SEATS.count(flow.seats, work.seats)
        if access_log.wanted():
            access_log.note_flow(request, flow, work)
        if info.verb in MUTATING:
            meters.WATCHERS.observe(flow.labels, control.watches.interested(info))
        ticket = queues.start(work, flow.hand, flow.labels, flow.distinguisher, request.user, info)
        if ticket is None or (ticket.decision is not None and not await _turn(queues, ticket, request, request_timeout)):
            return _refuse(flow)
        if ticket.decision is None and not flow.exempt:
            meters.WAIT.observe((*ticket.labels, "true"), 0.0)  # one that need not wait counts too, as upstream's does
        sent: Sent | None = None
        forget = control.watches.add(request) if info.verb == "watch" and info.is_resource_request else None
        try:
            if not flow.exempt and (weight := weight_of(info.verb)):
                sent = pace.enter(flow.key, weight) or await pace.wait(flow.key, weight)
            if not flow.exempt and not turns.taken(flow.key):
                await turns.wait(flow.key)
            latency.took(clock() - ticket.arrival)
            if forget is not None:
                access_log.note_time(request, "apf_init_latency", clock() - ticket.arrival)
            response = await (handler(request) if flow.exempt else turns.each_step(flow.key, handler(request)))
        except BaseException as error:
            if forget is not None:
                forget()
            if sent is not None:
                pace.leave(sent)
            if isinstance(error, StatusError):
                error.headers.extend(flow.headers)
            raise
        finally:
            executed = queues.finish(ticket)
            meters.EXECUTION.count(flow.execution, executed)
            access_log.note_time(request, "apf_execution_time", executed)
        response.headers = [*response.headers, *flow.headers]
        if forget is not None:
            _when_ended(response, forget)
        elif isinstance(response, StreamResponse) and not flow.exempt:
            response.run = stream_in_turn(response.run, turns, flow.key)
        if sent is not None:
            pace.leave_after(response, sent)
        return response

    return priority_and_fairness


async def _turn(queues: QueueSet, ticket: Ticket, request: Request, request_timeout: float) -> bool:
    began = time.monotonic()
    kind = kind_of(request)
    IN_QUEUE.add(kind, 1)
    try:
        executes = await queues.wait(ticket, _longest_wait(request, request_timeout))
    finally:
        IN_QUEUE.add(kind, -1)
    request.excused += time.monotonic() - began
    meters.WAIT.observe((*ticket.labels, "true" if executes else "false"), time.monotonic() - ticket.arrival)
    return executes


def _longest_wait(request: Request, request_timeout: float) -> float:
    """A quarter of the time that the request has, less what has passed of it."""
    now = time.monotonic()
    allotted = request.deadline - request.received if request.deadline is not None else request_timeout
    return request.received + min(allotted / 4, _LONGEST_WAIT) - now


def _refuse(flow: Flow) -> Response:
    retry = flow.level.retry_after
    retry.refused()
    response = too_many_requests(retry.seconds)
    response.headers += flow.headers
    return response


def _when_ended(response: Response, forget: Callable[[], None]) -> None:
    if not isinstance(response, StreamResponse):
        forget()
        return
    run = response.run

    async def run_and_forget(writer: StreamWriter) -> None:
        await run(writer)

    # Not at the end of `run`: a client that has gone before its stream began never lets it run.
    weakref.finalize(run_and_forget, forget).atexit = False
    response.run = run_and_forget
