"""Metrics of authentication and authorization.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/metrics.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.authorization.interface import AuthorizationResult, Decision
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

_BUCKETS: Final = tuple(0.001 * 2**i for i in range(15))
_RESULT: Final = ("result",)
_USERS: Final = Counter(
    "authenticated_user_requests", "Counter of authenticated requests broken out by username.", ("username",)
)
_AUTHENTICATIONS: Final = Counter("authentication_attempts", "Counter of authenticated attempts.", _RESULT)
_AUTHENTICATION_SECONDS: Final = Histogram(
    "authentication_duration_seconds", "Authentication duration in seconds broken out by result.", _RESULT, _BUCKETS
)
_AUTHORIZATIONS: Final = Counter(
    "authorization_attempts_total",
    "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or "
    "'error'.",
    _RESULT,
)
_AUTHORIZATION_SECONDS: Final = Histogram(
    "authorization_duration_seconds", "Authorization duration in seconds broken out by result.", _RESULT, _BUCKETS
)
_KNOWN: Final = frozenset({"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"})


class _Result:
    """The metrics of authentication or authorization attempts with one result: their number and their duration."""

    def __init__(self, attempts: Counter, seconds: Histogram, result: str) -> None:
        self._attempts = attempts.row((result,))
        self._observe = seconds.counter(seconds.row((result,)))

    def count(self, seconds: float) -> None:
        """Count an attempt that took `seconds`."""
        self._attempts[0] += 1
        self._observe(seconds)


_SUCCESS, _FAILURE, _ERROR = (
    _Result(_AUTHENTICATIONS, _AUTHENTICATION_SECONDS, result) for result in ("success", "failure", "error")
)
_NAMED: Final = {name: _USERS.row((name,)) for name in (*_KNOWN, "email_id", "other")}
_ALLOWED: Final = _Result(_AUTHORIZATIONS, _AUTHORIZATION_SECONDS, "allowed")
_NOT_ALLOWED: Final = {
    Decision.DENY: _Result(_AUTHORIZATIONS, _AUTHORIZATION_SECONDS, "denied"),
    Decision.NO_OPINION: _Result(_AUTHORIZATIONS, _AUTHORIZATION_SECONDS, "no-opinion"),
}
_UNDECIDED: Final = _Result(_AUTHORIZATIONS, _AUTHORIZATION_SECONDS, "error")


def authenticated(user: str, seconds: float) -> None:
    """Count a successful authentication that took `seconds`.

    Only a few user names are labels; all others count as `email_id` or `other`.
    """
    _NAMED[user if user in _KNOWN else "email_id" if "@" in user else "other"][0] += 1
    _SUCCESS.count(seconds)


def not_authenticated(seconds: float, *, error: bool) -> None:
    """Count a failed authentication.

    Args:
        seconds: how long it took.
        error: whether the request had an invalid credential; False if it had none.
    """
    (_ERROR if error else _FAILURE).count(seconds)


def authorized(answer: AuthorizationResult, seconds: float) -> None:
    """Count an authorization that took `seconds` under the decision of `answer`: allowed, denied or no-opinion.

    If it was not allowed and has an error, it is counted as `error`.
    """
    if answer.decision is Decision.ALLOW:
        _ALLOWED.count(seconds)
    else:
        (_UNDECIDED if answer.error else _NOT_ALLOWED[answer.decision]).count(seconds)
