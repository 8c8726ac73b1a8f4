"""Metrics of policy decisions.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/metrics/metrics.go,
mutating/metrics/metrics.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram

_OF: Final = ("policy", "policy_binding", "error_type")
_ACTED: Final = (*_OF, "enforcement_action")
_SECONDS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_VALIDATED: Final = Counter(
    "apiserver_validating_admission_policy_check_total",
    "Validation admission policy check total, labeled by policy and further identified by binding and enforcement "
    "action taken.",
    _ACTED,
)
_VALIDATION_SECONDS: Final = Histogram(
    "apiserver_validating_admission_policy_check_duration_seconds",
    "Validation admission latency for individual validation expressions in seconds, labeled by policy and further "
    "including binding and enforcement action taken.",
    _ACTED,
    _SECONDS,
)
_MUTATED: Final = Counter(
    "apiserver_mutating_admission_policy_check_total",
    "Mutation admission policy check total, labeled by policy and further identified by binding.",
    _OF,
)
_MUTATION_SECONDS: Final = Histogram(
    "apiserver_mutating_admission_policy_check_duration_seconds",
    "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
    _OF,
    _SECONDS,
)


def error_type(text: str) -> str:
    """Return the value of the metric label `error_type` for a validation that is false or failed, from its error text.

    Args:
        text: the error text of a failed expression, or the message of a false one. Like upstream's ErrorType, this
            function does not distinguish the two.

    Returns:
        "compile_error", "out_of_budget" or "invalid_error".
    """
    if text.startswith("compilation"):
        return "compile_error"
    return (
        "out_of_budget" if text.startswith("validation failed due to running out of cost budget") else "invalid_error"
    )


def validated(policy: str, binding: str, error: str, action: str, seconds: float) -> None:
    """Record a validation in the metrics.

    Args:
        policy: the name of the policy.
        binding: the name of the binding.
        error: the result of `error_type`.
        action: "allow", "deny", "audit" or "warn".
        seconds: the evaluation time.
    """
    labels = (policy, binding, error, action)
    _VALIDATED.add(labels)
    _VALIDATION_SECONDS.observe(labels, seconds)


def mutated(policy: str, binding: str, error: str, seconds: float) -> None:
    """Record in the metrics that a mutation by `policy` and `binding` took `seconds`.

    `error` is the result of `error_type`, or "no_error".
    """
    labels = (policy, binding, error)
    _MUTATED.add(labels)
    _MUTATION_SECONDS.observe(labels, seconds)
