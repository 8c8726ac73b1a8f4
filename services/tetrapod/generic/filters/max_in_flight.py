"""Bounds the requests in work, reading and mutating apart (upstream: server/filters/maxinflight.go).

system:masters and long-running requests are not counted. Priority and fairness replaces this where it is on.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.filters.too_many_requests import too_many_requests
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.user import SYSTEM_MASTERS
from tetrapod.machinery.requestinfo import is_long_running

_READ_ONLY: Final = frozenset({"get", "list", "watch"})


class InFlight:
    """How many requests of either kind (True: they read) are under way, and how many may be; 0 is no limit."""

    def __init__(self, limit: int, mutating_limit: int) -> None:
        self.counts = {True: 0, False: 0}
        self.limits = {True: limit, False: mutating_limit}


def with_max_in_flight(handler: Handler, in_flight: InFlight) -> Handler:
    counts, limits = in_flight.counts, in_flight.limits

    async def max_in_flight(request: Request) -> Response:
        if is_long_running(request.info) or SYSTEM_MASTERS in request.user.groups:
            return await handler(request)
        reads = request.info is not None and request.info.verb in _READ_ONLY
        if limits[reads] and counts[reads] >= limits[reads]:
            return too_many_requests(1)
        counts[reads] += 1
        try:
            return await handler(request)
        finally:
            counts[reads] -= 1

    return max_in_flight
