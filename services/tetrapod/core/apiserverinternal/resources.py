"""The list of the kinds of internal.apiserver.k8s.io."""

from __future__ import annotations

from tetrapod.core.apiserverinternal import storage_versions
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group internal.apiserver.k8s.io."""
    return [storage_versions.definition()]
