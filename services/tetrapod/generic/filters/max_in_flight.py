"""Limits the number of requests in flight, separately for reading and mutating ones.

Requests of system:masters and long-running requests are not limited. Priority and fairness replaces this filter if it
is enabled.
Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.filters.plain_errors import too_many_requests
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.requestinfo import is_long_running
from tetrapod.machinery.user import SYSTEM_MASTERS

_READ_ONLY: Final = frozenset({"get", "list", "watch"})


class InFlight:
    """The numbers of requests in flight and their limits.

    Args:
        limit: the limit of read requests; 0 for none.
        mutating_limit: the limit of mutating requests; 0 for none.

    Attributes:
        counts: the number of requests in flight, by True for read requests and False for mutating ones.
        limits: the limits by the same keys.
    """

    def __init__(self, limit: int, mutating_limit: int) -> None:
        self.counts = {True: 0, False: 0}
        self.limits = {True: limit, False: mutating_limit}


def with_max_in_flight(handler: Handler, in_flight: InFlight) -> Handler:
    """Return a handler that limits the requests in flight to `in_flight`, and rejects those beyond with a 429.

    Long-running requests and those of system:masters are passed on without being counted.
    """
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
