"""The list of the kinds of storagemigration.k8s.io."""

from __future__ import annotations

from tetrapod.core.storagemigration import storage_version_migrations
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [storage_version_migrations.definition()]
