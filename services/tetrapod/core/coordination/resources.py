"""The list of the kinds of coordination.k8s.io."""

from __future__ import annotations

from tetrapod.core.coordination import lease_candidates
from tetrapod.core.coordination import leases as coordination_leases
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group coordination.k8s.io."""
    return [coordination_leases.definition(), lease_candidates.definition()]
