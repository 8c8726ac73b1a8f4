"""The list of the kinds of lifecycle.k8s.io."""

from __future__ import annotations

from tetrapod.core.lifecycle import eviction_requests
from tetrapod.core.lifecycle.evictions import definition as evictions
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group lifecycle.k8s.io."""
    return [evictions.definition(), eviction_requests.definition()]
