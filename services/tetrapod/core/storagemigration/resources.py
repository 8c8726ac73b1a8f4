"""The list of the kinds of storagemigration.k8s.io."""

from __future__ import annotations

from tetrapod.core.storagemigration import storage_version_migrations
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group storagemigration.k8s.io."""
    return [storage_version_migrations.definition()]
