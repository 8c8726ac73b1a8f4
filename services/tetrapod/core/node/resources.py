"""The list of the kinds of node.k8s.io."""

from __future__ import annotations

from tetrapod.core.node import runtime_classes
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group node.k8s.io."""
    return [runtime_classes.definition()]
