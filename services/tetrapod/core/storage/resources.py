"""The list of the kinds of storage.k8s.io."""

from __future__ import annotations

from tetrapod.core.storage import (
    csi_drivers,
    csi_nodes,
    csi_storage_capacities,
    storage_classes,
    volume_attachments,
    volume_attributes_classes,
)
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group storage.k8s.io."""
    return [
        csi_drivers.definition(),
        csi_nodes.definition(),
        csi_storage_capacities.definition(),
        storage_classes.definition(),
        volume_attributes_classes.definition(),
        volume_attachments.definition(),
    ]
