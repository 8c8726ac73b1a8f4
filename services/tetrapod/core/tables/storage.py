"""Columns of storage kinds.

Upstream: pkg/printers/internalversion/printers.go, printPersistentVolume, printStorageClass, printCSIDriver and others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, UNSET, age, name_of, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _storage_class_row(obj: Object) -> list[Any]:
    return [
        name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj),
    ]


def _storage_classes(classes: Sequence[Object]) -> Callable[[Object], list[Any]]:
    """Return the row function of a list, which marks the default class.

    The default is the most recently created class with the annotation; of several created in the same second, the first by name.
    """
    candidates = [(obj["metadata"].get("creationTimestamp") or "", name_of(obj)) for obj in classes if _says_default(obj)]
    latest = max((time for time, _ in candidates), default="")
    default = min((name for time, name in candidates if time == latest), default=None)

    def row(obj: Object) -> list[Any]:
        name, *others = _storage_class_row(obj)
        return [f"{name} (default)" if name == default else name, *others]

    return row


def _says_default(obj: Object) -> bool:
    """Return whether an annotation marks the class as default."""
    annotations = obj["metadata"].get("annotations") or {}
    return any(annotations.get(f"storageclass.{word}kubernetes.io/is-default-class") == "true" for word in ("", "beta."))


STORAGE_CLASSES: Final = TableConvertor(
    (
        NAME,
        Column("Provisioner"),
        Column("ReclaimPolicy"),
        Column("VolumeBindingMode"),
        Column("AllowVolumeExpansion"),
        AGE,
    ),
    _storage_class_row,
    of_list=_storage_classes,
)


def _csi_driver_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    audiences = [t.get("audience", "") for t in spec.get("tokenRequests") or []]
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or []) or NONE,
        age(obj),
    ]


CSI_DRIVERS: Final = TableConvertor(
    (
        NAME,
        Column("AttachRequired", "boolean"),
        Column("PodInfoOnMount", "boolean"),
        Column("StorageCapacity", "boolean"),
        Column("TokenRequests"),
        Column("RequiresRepublish", "boolean"),
        Column("Modes"),
        AGE,
    ),
    _csi_driver_row,
)
CSI_NODES: Final = TableConvertor(
    (NAME, Column("Drivers", "integer"), AGE),
    lambda obj: [name_of(obj), len(spec_of(obj).get("drivers") or []), age(obj)],
)


def _attachment_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(status_of(obj).get("attached")),
        age(obj),
    ]


VOLUME_ATTACHMENTS: Final = TableConvertor(
    (
        NAME,
        Column("Attacher", format="name"),
        Column("PV"),
        Column("Node"),
        Column("Attached", "boolean"),
        AGE,
    ),
    _attachment_row,
)
VOLUME_ATTRIBUTES_CLASSES: Final = TableConvertor(
    (NAME, Column("DriverName"), AGE),
    lambda obj: [name_of(obj), obj.get("driverName", ""), age(obj)],
)
