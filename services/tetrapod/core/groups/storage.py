"""storage.k8s.io/v1 and storagemigration.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import volumes as defaults
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import cluster as cluster_tables
from tetrapod.core.tables import storage as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition

GROUP = "storage.k8s.io"


def definitions() -> list[ResourceDefinition]:
    attachment = KindStrategy(status=True, returns_deleted=True)
    csi_node = KindStrategy(status=True, returns_deleted=True)
    migration = KindStrategy(status=True, generation=["spec"])
    return [
        builtin(GROUP, "csidrivers", KindStrategy(default=defaults.default_csi_driver, generation=["spec"]), table=tables.CSI_DRIVERS),
        builtin(GROUP, "csinodes", csi_node, table=tables.CSI_NODES, subresources={"status": status_of(csi_node)}),
        builtin(GROUP, "csistoragecapacities", KindStrategy(unconditional_update=False)),
        builtin(
            GROUP,
            "storageclasses",
            KindStrategy(default=defaults.default_storage_class, returns_deleted=True),
            table=tables.STORAGE_CLASSES,
        ),
        builtin(GROUP, "volumeattachments", attachment, table=tables.VOLUME_ATTACHMENTS, subresources={"status": status_of(attachment)}),
        builtin(GROUP, "volumeattributesclasses", KindStrategy(returns_deleted=True), table=tables.VOLUME_ATTRIBUTES_CLASSES),
        builtin(
            "storagemigration.k8s.io",
            "storageversionmigrations",
            migration,
            table=cluster_tables.STORAGE_VERSION_MIGRATIONS,
            subresources={"status": status_of(migration)},
        ),
    ]
