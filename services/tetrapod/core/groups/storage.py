"""Resource definitions of storage.k8s.io/v1 and storagemigration.k8s.io/v1."""

from __future__ import annotations

from tetrapod.core.defaults import volumes as defaults
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.tables import cluster as cluster_tables
from tetrapod.core.tables import storage as tables
from tetrapod.core.validation import csi, migrations
from tetrapod.core.validation import storage_classes as classes
from tetrapod.core.validation import volume_attachments as attachments
from tetrapod.core.warnings import others as warnings
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery.gvk import Object


class CSIDriverStrategy(KindStrategy):
    """The strategy of CSIDriver: the generation is unset until the first change of the spec. Upstream: csidriver/strategy.go."""

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


class NodeStatusStrategy(StatusStrategy):
    """The strategy of the status of CSINode. Upstream: csinode/strategy.go.

    storageHealth is dropped, because the gate CSIVolumeHealth is off.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        if not (old.get("status") or {}).get("storageHealth"):
            (new.get("status") or {}).pop("storageHealth", None)


def csi_drivers() -> ResourceDefinition:
    """Return the definition of CSIDrivers."""
    strategy = CSIDriverStrategy(
        default=defaults.default_csi_driver,
        validate=csi.validate_driver,
        whole_update=csi.validate_driver_update,
        warnings=csi.driver_warnings,
        unconditional_update=False,
        returns_deleted=True,
    )
    return builtin("storage.k8s.io", "csidrivers", strategy, table=tables.CSI_DRIVERS)


def csi_nodes() -> ResourceDefinition:
    """Return the definition of CSINodes."""
    strategy = KindStrategy(
        validate=csi.validate_node,
        whole_update=csi.validate_node_update,
        revalidates_generate_name=True,
        status=True,
        unconditional_update=False,
        returns_deleted=True,
    )
    status = NodeStatusStrategy(strategy, keep_metadata=ALL_METADATA)
    return builtin("storage.k8s.io", "csinodes", strategy, table=tables.CSI_NODES, subresources={"status": status})


def csi_storage_capacities() -> ResourceDefinition:
    """Return the definition of CSIStorageCapacities."""
    strategy = KindStrategy(
        validate=csi.validate_capacity,
        validate_update=csi.validate_capacity_update,
        revalidates_generate_name=True,
        warnings=warnings.storage_capacity,
        unconditional_update=False,
    )
    return builtin("storage.k8s.io", "csistoragecapacities", strategy)


def storage_classes() -> ResourceDefinition:
    """Return the definition of StorageClasses."""
    strategy = KindStrategy(
        default=defaults.default_storage_class,
        validate=classes.validate,
        validate_update=classes.validate_update,
        revalidates_generate_name=True,
        warnings=warnings.storage_class,
        returns_deleted=True,
    )
    return builtin("storage.k8s.io", "storageclasses", strategy, table=tables.STORAGE_CLASSES)


def volume_attributes_classes() -> ResourceDefinition:
    """Return the definition of VolumeAttributesClasses."""
    strategy = KindStrategy(
        validate=classes.validate_attributes,
        whole_update=classes.validate_attributes_update,
        returns_deleted=True,
        revalidates_generate_name=True,
    )
    return builtin("storage.k8s.io", "volumeattributesclasses", strategy, table=tables.VOLUME_ATTRIBUTES_CLASSES)


def volume_attachments() -> ResourceDefinition:
    """Return the definition of VolumeAttachments."""
    strategy = KindStrategy(
        validate=attachments.validate,
        whole_update=attachments.validate_update,
        revalidates_generate_name=True,
        status=True,
        initial_status={"attached": False},
        unconditional_update=False,
        returns_deleted=True,
    )
    status = status_strategy(strategy, keep_metadata=ALL_METADATA, validate=attachments.validate_status, revalidates_generate_name=True)
    return builtin("storage.k8s.io", "volumeattachments", strategy, table=tables.VOLUME_ATTACHMENTS, subresources={"status": status})


def storage_version_migrations() -> ResourceDefinition:
    """Return the definition of StorageVersionMigrations."""
    strategy = KindStrategy(
        validate=migrations.validate,
        validate_update=migrations.validate_update,
        status=True,
        unconditional_update=False,
        revalidates_generate_name=True,
    )
    return builtin(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        strategy,
        table=cluster_tables.STORAGE_VERSION_MIGRATIONS,
        subresources={"status": status_strategy(strategy, keep_metadata=ALL_METADATA, validate=migrations.validate_status)},
    )


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [
        csi_drivers(),
        csi_nodes(),
        csi_storage_capacities(),
        storage_classes(),
        volume_attributes_classes(),
        volume_attachments(),
    ]


def migration_definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [storage_version_migrations()]
