"""The list of the kinds of apps."""

from __future__ import annotations

from tetrapod.core.apps import controller_revisions, daemon_sets, deployments, replica_sets
from tetrapod.core.apps import stateful_sets as apps_stateful_sets
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group apps."""
    return [
        controller_revisions.definition(),
        daemon_sets.definition(),
        deployments.definition(),
        replica_sets.definition(),
        apps_stateful_sets.definition(),
    ]
