"""How many requests were authenticated and authorized, and how long that took (upstream: endpoints/filters/metrics.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.authorization.interface import Answer, Decision
from tetrapod.generic.metrics import Counter, Histogram

_BUCKETS: Final = tuple(0.001 * 2**i for i in range(15))
_RESULT: Final = ("result",)
_USERS: Final = Counter("authenticated_user_requests", "Counter of authenticated requests broken out by username.", ("username",))
_AUTHENTICATIONS: Final = Counter("authentication_attempts", "Counter of authenticated attempts.", _RESULT)
_AUTHENTICATION_SECONDS: Final = Histogram(
    "authentication_duration_seconds", "Authentication duration in seconds broken out by result.", _RESULT, _BUCKETS
)
_AUTHORIZATIONS: Final = Counter(
    "authorization_attempts_total",
    "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
    _RESULT,
)
_AUTHORIZATION_SECONDS: Final = Histogram(
    "authorization_duration_seconds", "Authorization duration in seconds broken out by result.", _RESULT, _BUCKETS
)
_KNOWN: Final = frozenset({"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"})
_DECIDED: Final = {Decision.ALLOW: ("allowed",), Decision.DENY: ("denied",), Decision.NO_OPINION: ("no-opinion",)}
_ERROR, _FAILURE, _SUCCESS = ("error",), ("failure",), ("success",)


def authenticated(user: str, seconds: float) -> None:
    _USERS.add((user if user in _KNOWN else "email_id" if "@" in user else "other",))
    _AUTHENTICATIONS.add(_SUCCESS)
    _AUTHENTICATION_SECONDS.observe(_SUCCESS, seconds)


def not_authenticated(seconds: float, *, error: bool) -> None:
    """`error`: a credential was bad; else there was none."""
    result = _ERROR if error else _FAILURE
    _AUTHENTICATIONS.add(result)
    _AUTHENTICATION_SECONDS.observe(result, seconds)


def authorized(answer: Answer, seconds: float) -> None:
    result = _ERROR if answer.error and answer.decision is not Decision.ALLOW else _DECIDED[answer.decision]
    _AUTHORIZATIONS.add(result)
    _AUTHORIZATION_SECONDS.observe(result, seconds)
