"""The list of the kinds of discovery.k8s.io."""

from __future__ import annotations

from tetrapod.core.discovery import endpoint_slices as discovery_endpoint_slices
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group discovery.k8s.io."""
    return [discovery_endpoint_slices.definition()]
