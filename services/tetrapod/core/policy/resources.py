"""The list of the kinds of policy."""

from __future__ import annotations

from tetrapod.core.policy import pod_disruption_budgets
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group policy."""
    return [pod_disruption_budgets.definition()]
