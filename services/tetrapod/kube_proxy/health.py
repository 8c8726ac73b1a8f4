"""`ProxyHealth`: whether the rules follow the API, and the server that says so (/healthz and /livez).

Upstream: pkg/proxy/healthcheck/proxy_health.go
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import orjson

from tetrapod.generic.http.error_responses import not_found
from tetrapod.generic.http.headers import JSON_TYPE, NOSNIFF
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.counters import Counter
from tetrapod.kube_proxy import metrics
from tetrapod.kube_proxy.families import Family
from tetrapod.machinery.gvk import Object

_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
"""The taint that the cluster autoscaler puts on a node before it deletes it."""


class ProxyHealth:
    """The health of the writers of rules of each family.

    A writer is healthy unless a change has waited for longer than the timeout.

    Args:
        timeout: the seconds that a change may wait.
        clock: returns the present time as a timestamp.
    """

    def __init__(self, timeout: float, clock: Callable[[], float] = time.time) -> None:
        self._timeout = timeout
        self._clock = clock
        self._updated: dict[Family, float] = {}
        self._oldest_queued: dict[Family, float] = {}

    def queued(self, family: Family) -> None:
        """Take note of a change that has to be written."""
        self._oldest_queued.setdefault(family, self._clock())

    def updated(self, family: Family) -> None:
        """Take note that all changes are written."""
        self._oldest_queued.pop(family, None)
        self._updated[family] = self._clock()

    @property
    def healthy(self) -> bool:
        """Whether all writers are healthy."""
        return all(self._is_healthy(family) for family in self._updated)

    def _is_healthy(self, family: Family) -> bool:
        queued = self._oldest_queued.get(family)
        return queued is None or self._clock() - queued < self._timeout

    def report(self, *, eligible: bool | None = None) -> Object:
        """Return the health as upstream shows it.

        Args:
            eligible: whether load balancers may use the node; None to leave it out.
        """
        healthy = self.healthy and eligible is not False
        now = self._clock()
        last = now if healthy else max(self._updated.values(), default=0.0)
        report: Object = {"lastUpdated": _rfc3339(last), "currentTime": _rfc3339(now)}
        if eligible is not None:
            report["nodeEligible"] = eligible
        report["healthy"] = self.healthy
        status = {
            family.value: {"lastUpdated": _rfc3339(updated), "healthy": self._is_healthy(family)}
            for family, updated in sorted(self._updated.items(), key=lambda pair: pair[0].value)
        }
        return report | ({"status": status} if status else {})


def is_eligible(node: Object | None) -> bool:
    """Return whether load balancers may send traffic to a node: it exists and will not be deleted soon."""
    if node is None or node["metadata"].get("deletionTimestamp"):
        return False
    return all(taint.get("key") != _TO_BE_DELETED for taint in node.get("spec", {}).get("taints") or ())


class HealthHandler:
    """Answers requests of load balancers and of the kubelet about this proxy.

    Args:
        health: the health.
        node: returns the Node of this proxy, or None if it does not exist.
    """

    def __init__(self, health: ProxyHealth, node: Callable[[], Object | None]) -> None:
        self._health = health
        self._node = node

    async def __call__(self, request: Request) -> Response:
        """Answer a request."""
        if request.path == "/healthz":
            eligible = is_eligible(self._node())
            report = self._health.report(eligible=eligible)
            return _response(report, report["healthy"] and eligible, metrics.HEALTHZ)
        if request.path == "/livez":
            report = self._health.report()
            return _response(report, report["healthy"], metrics.LIVEZ)
        return not_found()


def _response(report: Object, healthy: bool, counter: Counter) -> Response:
    status = 200 if healthy else 503
    counter.add((str(status),))
    return Response(status, [JSON_TYPE, NOSNIFF], orjson.dumps(report))


def _rfc3339(timestamp: float) -> str:
    """Return a time as Go encodes it in JSON. 0 is Go's zero time."""
    if not timestamp:
        return "0001-01-01T00:00:00Z"
    moment = datetime.fromtimestamp(timestamp, UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"
