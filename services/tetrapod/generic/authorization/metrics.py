"""Metrics of authorizers, under upstream's names.

Upstream: k8s.io/apiserver/pkg/authorization/{metrics,cel}, plugin/pkg/authorizer/webhook/metrics.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

_KIND: Final = ("type", "name")
_RESULT: Final = ("name", "result")

DECISIONS: Final = Counter(
    "apiserver_authorization_decisions_total",
    "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
    (*_KIND, "decision"),
)
EVALUATIONS: Final = Counter(
    "apiserver_authorization_webhook_evaluations_total", "Round-trips to authorization webhooks.", _RESULT
)
DURATIONS: Final = Histogram(
    "apiserver_authorization_webhook_duration_seconds",
    "Request latency in seconds.",
    _RESULT,
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
FAIL_OPEN: Final = Counter(
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    "NoOpinion results due to webhook timeout or error.",
    _RESULT,
)
CONDITION_ERRORS: Final = Counter(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    "Total number of errors when an authorization webhook encounters a match condition error split by authorizer "
    "type and name.",
    _KIND,
)
EXCLUSIONS: Final = Counter(
    "apiserver_authorization_match_condition_exclusions_total",
    "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
    _KIND,
)
CONDITION_SECONDS: Final = Histogram(
    "apiserver_authorization_match_condition_evaluation_seconds",
    "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
    _KIND,
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)
