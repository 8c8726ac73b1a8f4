"""policy/v1 (evictions are a subresource of pods)."""

from __future__ import annotations

from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import workloads as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    budget = KindStrategy(status=True, generation=["spec"], unconditional_update=False, initial_status=None)
    return [
        builtin(
            "policy",
            "poddisruptionbudgets",
            budget,
            table=tables.POD_DISRUPTION_BUDGETS,
            subresources={"status": status_of(budget)},
        )
    ]
