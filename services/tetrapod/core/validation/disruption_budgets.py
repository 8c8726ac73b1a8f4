"""Validation of PodDisruptionBudget.

Upstream: pkg/apis/policy/validation/validation.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation import rolling, shown
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import known, not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector

_EVICTION: Final = frozenset({"IfHealthyBudget", "AlwaysAllow"})


def validate(obj: Object) -> list[FieldError]:
    """Validate a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(field.invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(name)) is not None:
            errors += rolling.amount(value, f"spec.{name}") + rolling.at_most_all(value, f"spec.{name}")
    errors += validate_label_selector(spec.get("selector"), "spec.selector")
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        errors += known(policy, _EVICTION, "spec.unhealthyPodEvictionPolicy")
    return errors


def _shown(spec: Object) -> Object:
    """Return the spec as upstream's internal struct prints."""
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown.selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a PodDisruptionBudget."""
    status = new.get("status") or {}
    errors = conditions(status.get("conditions") or [], "status.conditions")
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += not_negative(status.get(name), f"status.{name}")
    return errors
