"""The disruptions that a PodDisruptionBudget allows, as evictions count them in its status.

Upstream: pkg/registry/core/pod/storage/eviction.go, checkAndDecrement, createTooManyRequestsError.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery import status
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

_BUDGET_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MAX_DISRUPTED: Final = 2000
_BUDGET_IN_ERRORS: Final = GroupResource("policy", "poddisruptionbudget")


def take_disruption(budget: Object, pod: str) -> None:
    """Take one disruption from the budget's status and record the pod in disruptedPods, in place.

    Args:
        pod: the pod's name.

    Raises:
        StatusError: 429, the status is outdated or allows no disruption; 403, disruptionsAllowed is negative or
            disruptedPods has too many pods.
    """
    budget_status = budget.setdefault("status", {})
    name = budget["metadata"]["name"]
    if (budget_status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise still_processed(name)
    allowed = budget_status.get("disruptionsAllowed") or 0
    if allowed < 0:
        text = "pdb disruptions allowed is negative"
        raise _forbidden(name, text, text)
    if len(budget_status.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        raise _forbidden(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _too_many_requests(f"The disruption budget {name} {_why_none_is_allowed(budget)}", 0)
    budget_status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _deny(budget)
    budget_status.setdefault("disruptedPods", {})[pod] = now_rfc3339()


def _why_none_is_allowed(budget: Object) -> str:
    """Return the reason why the status of a budget allows no disruption, as the predicate of a sentence."""
    needed, healthy = (budget["status"].get(name) or 0 for name in ("desiredHealthy", "currentHealthy"))
    denial = find_condition(budget, "DisruptionAllowed") or {}
    message = denial.get("message") if denial.get("status") == "False" else ""
    if message and denial.get("reason") == "SyncFailed":
        return f"does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= needed:
        return f"needs {needed} healthy pods and has {healthy} currently"
    if message:
        return f"does not allow evicting pods currently ({denial.get('reason', '')}): {message}"
    return "does not allow evicting pods currently"


def _forbidden(budget: str, reason: str, cause: str) -> StatusError:
    """Return the error 403 for a budget whose status allows no eviction until the controller has corrected it."""
    error = status.forbidden(_BUDGET_IN_ERRORS, budget, reason)
    text = f"The disruption budget {budget} does not allow evicting pods currently: {cause}"
    error.details = {**(error.details or {}), "causes": [{"reason": "DisruptionBudget", "message": text}]}
    return error


def _too_many_requests(message: str, retry_after: int) -> StatusError:
    """Return the error 429 with `message` as its cause.

    Args:
        retry_after: seconds, or 0 to leave it out.
    """
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    error = StatusError(429, "TooManyRequests", _BUDGET_VIOLATED, details)
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return error


def still_processed(budget: str) -> StatusError:
    """Return the error 429 that asks the client to repeat the eviction after 10 seconds.

    Args:
        budget: the name of the PodDisruptionBudget, whose status is outdated.
    """
    return _too_many_requests(f"The disruption budget {budget} is still being processed by the server.", 10)


def _deny(budget: Object) -> None:
    """Set the budget's condition DisruptionAllowed to False, in place."""
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": now_rfc3339(),
        "observedGeneration": budget["status"].get("observedGeneration", 0),
    }
    conditions = budget["status"].setdefault("conditions", [])
    conditions[:] = [*(c for c in conditions if c.get("type") != "DisruptionAllowed"), condition]


def evicts_unhealthy(budget: Object) -> bool:
    """Return whether a pod that is not ready may be evicted without taking a disruption from the budget.

    True if unhealthyPodEvictionPolicy is AlwaysAllow, or if at least desiredHealthy (and one) pods are healthy.
    """
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
    if policy == "AlwaysAllow":
        return True
    budget_status = budget.get("status") or {}
    return (budget_status.get("currentHealthy") or 0) >= (budget_status.get("desiredHealthy") or 0) and (
        budget_status.get("desiredHealthy") or 0
    ) > 0
