"""Resource definitions of policy/v1. Evictions are a subresource of pods."""

from __future__ import annotations

from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import disruption_budgets
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import PlainStatusStrategy

_INITIAL_STATUS: Final = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def pod_disruption_budgets() -> ResourceDefinition:
    """Return the definition of PodDisruptionBudgets."""
    strategy = KindStrategy(
        validate=disruption_budgets.validate,
        status=True,
        initial_status=_INITIAL_STATUS,
        generation=["spec"],
        unconditional_update=False,
        metadata="late",
    )
    status = PlainStatusStrategy(strategy, validate=disruption_budgets.validate_status)
    return builtin("policy", "poddisruptionbudgets", strategy, table=tables.POD_DISRUPTION_BUDGETS, subresources={"status": status})


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [pod_disruption_budgets()]
