"""Estimates how many seats a request takes.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/request/list_work_estimator.go,
mutating_work_estimator.go; watch_tracker.go
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.request import Request
from tetrapod.machinery.requestinfo import RequestInfo

_GATE: Final = "SizeBasedListCostEstimate"
_MOST_LIST_SEATS: Final = 100
_MOST_LIST_SEATS_BY_COUNT: Final = 10
_MOST_MUTATING_SEATS: Final = 10
_BYTES_PER_SEAT: Final = 100_000
_OBJECTS_PER_SEAT: Final = 100
_DIGITS: Final = 19
"""Maximum number of digits of a `limit` that is parsed."""
_STREAMED_AT_ONCE: Final = 1_000_000
"""Bytes of a list that are in memory at a time when it is served from the watch cache, regardless of its length."""
_WATCHES_PER_SEAT: Final = 10
_EVENT_SECONDS: Final = 0.005
MUTATING: Final = frozenset({"create", "update", "patch", "delete"})
_TRUE: Final = frozenset({"true", "1", "t", "T", "TRUE", "True"})


class Estimate(NamedTuple):
    """The estimated seats of a request.

    It takes the larger of `initial` and `final` while it executes. If `linger` is not 0, it keeps that number for
    `linger` seconds afterwards, while its watch events are sent.

    Attributes:
        initial: the seats for the work of the request itself.
        final: the seats for the watch events that the request causes; 0 if it causes none.
        linger: seconds.
    """

    initial: int = 1
    final: int = 0
    linger: float = 0.0

    @property
    def seats(self) -> int:
        """The seats that the request occupies: the larger of `initial` and `final`."""
        return self.final if self.final > self.initial else self.initial


LEAST: Final = Estimate()

Stats = Callable[[str, str], tuple[int, int] | None]
"""Function from (group, resource) to the number of objects and their average size in bytes; None if the server does
not have them.
"""


class Watches:
    """The number of open watches of each object, namespace and resource.

    A write costs more if many watches receive its event.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def add(self, request: Request) -> Callable[[], None]:
        """Count a watch and return a function that ends the count, which must be called once.

        Watches of pods with a `spec.nodeName` selector are not counted, because an index already filters their events.
        """
        info = request.info
        if info is None or (info.resource == "pods" and "spec.nodeName=" in info.field_selector.replace("==", "=")):
            return _do_nothing
        key = (info.api_group, info.resource, info.namespace, info.name)
        self._counts[key] += 1

        def forget() -> None:
            self._counts[key] -= 1
            if self._counts[key] <= 0:
                del self._counts[key]

        return forget

    def interested(self, info: RequestInfo) -> int:
        """Return the number of counted watches whose scope includes the object of this write."""
        counts = self._counts
        if not counts:
            return 0
        number = counts[info.api_group, info.resource, "", ""]
        if info.namespace:
            number += counts[info.api_group, info.resource, info.namespace, ""]
        if info.name:
            number += counts[info.api_group, info.resource, info.namespace, info.name]
        return number


def estimate(request: Request, info: RequestInfo, most: int, stats: Stats, watches: Watches) -> Estimate:
    """Return the estimated seats of a request.

    Args:
        request: the request.
        info: its request info.
        most: the most seats that the priority level allows for one request; 0 if it has no such limit.
        stats: returns the number and average size in bytes of the objects of a group and resource; None if unknown.
        watches: the open watches.
    """
    verb = info.verb
    if verb in ("list", "watch"):
        limit = _MOST_LIST_SEATS if feature_gates.enabled(_GATE) else _MOST_LIST_SEATS_BY_COUNT
        return _list(request, info, min(most or limit, limit), stats)
    if verb in MUTATING:
        return _mutation(info, min(most or _MOST_MUTATING_SEATS, _MOST_MUTATING_SEATS), watches)
    return LEAST


def _list(request: Request, info: RequestInfo, most: int, stats: Stats) -> Estimate:
    query = request.query().values if request.query_string else {}
    version = query.get("resourceVersion", "")
    if info.verb == "watch" and query.get("sendInitialEvents") not in _TRUE and version not in ("", "0"):
        return LEAST
    statistics = stats(info.api_group, info.resource)
    if statistics is None:
        return LEAST
    objects, size = statistics
    returned, limit = objects, query.get("limit", "")
    if info.name:
        returned = 1
    elif limit.isdecimal() and len(limit) < _DIGITS and 0 < int(limit) < objects:
        returned = int(limit)
    if feature_gates.enabled(_GATE):
        # All lists are served from the watch cache, including pages and consistent lists.
        seats = math.ceil(min(returned * size, _STREAMED_AT_ONCE) / _BYTES_PER_SEAT)
    else:
        seats = math.ceil(_processed(info, query, objects, returned) / _OBJECTS_PER_SEAT)
    return Estimate(min(max(seats, 1), most))


def _processed(info: RequestInfo, query: Mapping[str, str], objects: int, returned: int) -> int:
    """Return the number of objects that a list processes by the former estimate, which knows no sizes.

    As upstream, pages and lists at an exact version count as if the store answered them.
    Upstream: seatsBasedOnObjectCount

    Args:
        info: the request info.
        query: the parameters of the query.
        objects: the number of stored objects.
        returned: the number of objects that the list returns without a selector.
    """
    if info.name:
        return 1
    match, limited = query.get("resourceVersionMatch"), query.get("limit", "0") not in ("", "0")
    exact = limited and query.get("resourceVersion", "") not in ("", "0")
    from_store = match != "NotOlderThan" if match else bool(query.get("continue")) or exact
    if info.verb == "watch" or not from_store:
        return objects
    if query.get("fieldSelector") or query.get("labelSelector"):
        return objects + returned
    return 2 * returned


def _mutation(info: RequestInfo, most: int, watches: Watches) -> Estimate:
    if info.subresource == "token" and info.resource == "serviceaccounts":
        return LEAST
    watching = watches.interested(info)
    if watching < _WATCHES_PER_SEAT:
        return LEAST
    seats = math.ceil(watching / _WATCHES_PER_SEAT)
    final = min(seats, most)
    return Estimate(1, final, seats * _EVENT_SECONDS / final)


def _do_nothing() -> None:
    return None
