"""Columns of PersistentVolumeClaim. Upstream: pkg/printers/internalversion/printers.go, printPersistentVolumeClaim."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, UNSET, age, name_of, spec_of, status_of
from tetrapod.core.v1.persistent_volumes.table import modes_text, phase_of, storage_class_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _claim_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        phase_of(obj),
        spec.get("volumeName") or "",
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        modes_text(status.get("accessModes")) if bound else "",
        storage_class_of(obj),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj),
        spec.get("volumeMode") or UNSET,
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Status"),
        Column("Volume"),
        Column("Capacity"),
        Column("Access Modes"),
        Column("StorageClass"),
        Column("VolumeAttributesClass"),
        AGE,
        Column("VolumeMode", priority=1),
    ),
    _claim_row,
)
