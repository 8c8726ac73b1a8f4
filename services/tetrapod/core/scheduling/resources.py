"""The list of the kinds of scheduling.k8s.io."""

from __future__ import annotations

from tetrapod.core.scheduling import priority_classes
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [priority_classes.definition()]
