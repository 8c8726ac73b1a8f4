"""The definition of PodDisruptionBudgets, with their validation and table columns.

Upstream: pkg/registry/policy/poddisruptionbudget/strategy.go and pkg/apis/policy/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.policy.former_budgets import from_former
from tetrapod.core.validation import rolling
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import known, not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import PlainStatusStrategy
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.table import Column, TableConvertor

_INITIAL_STATUS: Final = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


_EVICTION: Final = frozenset({"IfHealthyBudget", "AlwaysAllow"})


def definition() -> ResourceDefinition:
    """Return the resource definition of PodDisruptionBudgets: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        has_status=True,
        initial_status=_INITIAL_STATUS,
        generation=("spec",),
        allow_unconditional_update=False,
        metadata_rules="late",
    )
    status = PlainStatusStrategy(strategy, validate=validate_status)
    return builtin(
        "policy",
        "poddisruptionbudgets",
        strategy,
        table=TABLE,
        subresources={"status": status},
        from_former=from_former,
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a new or updated PodDisruptionBudget.

    At most one of minAvailable and maxUnavailable is set, to a number or to a percentage up to 100%. The selector is
    valid, and unhealthyPodEvictionPolicy is known.
    """
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
    """Return the spec in the form in which upstream's error prints it, its internal Go struct."""
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": go_structs.selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a PodDisruptionBudget: valid conditions, and counters that are not negative.

    The stored object is not used.
    """
    status = new.get("status") or {}
    errors = conditions(status.get("conditions") or [], "status.conditions")
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += not_negative(status.get(name), f"status.{name}")
    return errors


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        name_of(obj),
        "N/A" if minimum is None else str(minimum),
        "N/A" if maximum is None else str(maximum),
        status_of(obj).get("disruptionsAllowed") or 0,
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Min Available"),
        Column("Max Unavailable"),
        Column("Allowed Disruptions", "integer"),
        AGE,
    ),
    _row,
)
