"""Metrics of filter latency and of impersonation.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filterlatency; endpoints/metrics/metrics.go, RecordFilterLatency;
endpoints/filters/impersonation/metrics
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Authorizer, Decision
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

_FILTERS: Final = Histogram(
    "apiserver_request_filter_duration_seconds",
    "Request filter latency distribution in seconds, for each filter type",
    ("filter",),
    (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0),
)
_MODE: Final = ("mode", "decision")
_BUCKETS: Final = tuple(0.001 * 2**i for i in range(15))
_ATTEMPTS: Final = Counter(
    "apiserver_impersonation_attempts_total",
    "Total number of impersonation attempts split by mode and decision.",
    _MODE,
)
_ATTEMPT_SECONDS: Final = Histogram(
    "apiserver_impersonation_attempts_duration_seconds",
    "Latency of impersonation attempts in seconds split by mode and decision.",
    _MODE,
    _BUCKETS,
)
_CHECKS: Final = Counter(
    "apiserver_impersonation_authorization_attempts_total",
    "Total number of authorization checks made by the impersonation handler split by mode and decision.",
    _MODE,
)
_CHECK_SECONDS: Final = Histogram(
    "apiserver_impersonation_authorization_attempts_duration_seconds",
    "Latency of authorization checks made by the impersonation handler in seconds split by mode and decision.",
    _MODE,
    _BUCKETS,
)
_CONSTRAINED: Final = frozenset({"associated-node", "arbitrary-node", "serviceaccount", "user-info"})


class FilterLatency:
    """The latency metric of one filter. A filter calls `observe` or `passed` once for each request.

    Args:
        name: the name of the filter, as upstream's label has it.

    Attributes:
        observe: counts a request, and is called with the seconds that the filter needed.
    """

    __slots__ = ("_row", "observe")

    def __init__(self, name: str) -> None:
        self._row = _FILTERS.row((name,))
        self.observe: Final[Callable[[float], None]] = _FILTERS.counter(self._row)

    def passed(self) -> None:
        """Count a request for which the filter did nothing, as zero seconds."""
        self._row[0] += 1


def count_impersonation(constraint: str, seconds: float) -> None:
    """Count an allowed impersonation.

    Args:
        constraint: the authorized verb, such as `impersonate:user-info`; "" for the legacy mode.
        seconds: how long its authorization took.
    """
    labels = (_mode(constraint) if constraint else "legacy", "allowed")
    _ATTEMPTS.add(labels)
    _ATTEMPT_SECONDS.observe(labels, seconds)


def count_rejected_impersonation(seconds: float) -> None:
    """Count a rejected impersonation, whose authorization took this long."""
    _ATTEMPTS.add(("", "denied"))
    _ATTEMPT_SECONDS.observe(("", "denied"), seconds)


class CountedAuthorizer:
    """An authorizer that forwards to `inner` and counts the checks as checks of impersonation."""

    def __init__(self, inner: Authorizer) -> None:
        self._inner = inner

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        started = time.monotonic()
        answer = await self._inner.authorize(attributes)
        labels = (_mode(attributes.verb), "allowed" if answer.decision is Decision.ALLOW else "denied")
        _CHECKS.add(labels)
        _CHECK_SECONDS.observe(labels, time.monotonic() - started)
        return answer


def _mode(verb: str) -> str:
    """Return the mode of impersonation for a verb such as `impersonate:user-info`; `legacy` for `impersonate`.

    Returns:
        `unknown` for any other verb.

    Upstream: modeFromVerb
    """
    if verb == "impersonate":
        return "legacy"
    mode = verb.partition(":")[2].partition(":")[0]
    return mode if mode in _CONSTRAINED else "unknown"
