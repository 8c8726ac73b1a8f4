"""The debug endpoints `/debug/api_priority_and_fairness/…`: tables of levels, queues and requests.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller_debug.go
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.flowcontrol.queue import Ticket
from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.request import Handler, Request, Response

PREFIX: Final = "/debug/api_priority_and_fairness/"
_LEVELS: Final = (
    "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
    "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests",
)  # fmt: skip
_QUEUES: Final = (
    "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
    "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
)  # fmt: skip
_REQUESTS: Final = (
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
    "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
)  # fmt: skip
_DETAILS: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_LEAST_WIDTH: Final = 8
_NEVER: Final = "0001-01-01T00:00:00Z"


class Routes(Protocol):
    """The part of the server's table of paths that `install` needs (server/routes.py)."""

    def add(self, path: str, handler: Handler, *, listed: bool = True) -> None:
        """Serve exactly `path` with `handler`. A `listed` path is shown by `/`."""


def install(routes: Routes, control: FlowControl) -> None:
    """Add the debug endpoints of `control` to the routes. `/` does not list them."""

    async def levels(request: Request) -> Response:
        return _table(_LEVELS, _level_rows(control))

    async def queues(request: Request) -> Response:
        return _table(_QUEUES, _queue_rows(control))

    async def requests(request: Request) -> Response:
        details = bool(request.query().values.get("includeRequestDetails"))
        return _table((*_REQUESTS, *_DETAILS) if details else _REQUESTS, _request_rows(control, details))

    for name, handler in (("dump_priority_levels", levels), ("dump_queues", queues), ("dump_requests", requests)):
        routes.add(PREFIX + name, handler, listed=False)


def _level_rows(control: FlowControl) -> Iterable[Sequence[str]]:
    for name, level in sorted(control.levels.items()):
        queues = level.queues
        active = sum(1 for queue in queues.queues if queue.waiting)
        counts = (
            queues.waiting,
            queues.executing,
            queues.dispatched.total(),
            queues.rejected,
            queues.timed_out,
            queues.cancelled,
        )
        yield (name, str(active), _go(queues.idle), _go(level.quiescing), *map(str, counts))


def _queue_rows(control: FlowControl) -> Iterable[Sequence[str]]:
    for name, level in control.levels.items():
        for queue in level.queues.queues:
            estimates = [ticket.estimate for ticket in queue.waiting]
            counts = (queue.index, len(queue.waiting), len(queue.executing), queue.seats)
            initial, most = sum(e.initial for e in estimates), sum(e.seats for e in estimates)
            work = sum(ticket.work for ticket in queue.waiting)
            yield (name, *map(str, counts), _seat_seconds(queue.next_r), str(initial), str(most), _seat_seconds(work))


def _request_rows(control: FlowControl, details: bool) -> Iterable[Sequence[str]]:
    for level in control.levels.values():
        for queue in level.queues.queues:
            for index, ticket in enumerate(queue.waiting):
                yield _request_row(ticket, queue.index, index, details)
            for ticket in queue.executing:
                yield _request_row(ticket, queue.index, -1, details)
        for ticket in level.queues.queueless:
            yield _request_row(ticket, -1, -1, details)


def _request_row(ticket: Ticket, queue: int, index: int, details: bool) -> Sequence[str]:
    estimate, info = ticket.estimate, ticket.info
    row: tuple[str, ...] = (
        *ticket.labels,
        str(queue),
        str(index),
        ticket.distinguisher,
        _wall_clock_time(ticket.arrival),
        str(estimate.initial),
        str(estimate.final),
    )
    row += (
        f"{estimate.linger * 1000:g}ms" if estimate.linger else "0s",
        _NEVER if ticket.waits else _wall_clock_time(ticket.started),
    )
    if not details:
        return row
    version = f"{info.api_group}/{info.api_version}" if info.api_group else info.api_version
    return (
        *row,
        ticket.user.name,
        info.verb,
        info.path,
        info.namespace,
        info.name,
        version,
        info.resource,
        info.subresource,
    )


def _wall_clock_time(moment: float) -> str:
    """Return a time of time.monotonic() as RFC 3339 text of the wall clock, in UTC."""
    wall = datetime.datetime.fromtimestamp(time.time() - (time.monotonic() - moment), datetime.UTC)
    return wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _seat_seconds(work: float) -> str:
    return f"{max(work, 0):.8f}ss"


def _go(value: bool) -> str:
    return "true" if value else "false"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    lines = [[*(cell + "," for cell in row[:-1]), row[-1]] for row in (header, *rows)]
    widths = [max(_LEAST_WIDTH, *(len(line[i]) + 1 for line in lines)) for i in range(len(header) - 1)]
    text = "".join("".join(c.ljust(w) for c, w in zip(line, widths, strict=False)) + line[-1] + "\n" for line in lines)
    return Response(200, [TEXT_TYPE], text.encode())
