"""Columns of PersistentVolume. Upstream: pkg/printers/internalversion/printers.go, printPersistentVolume."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, UNSET, age, name_of, spec_of, status_of
from tetrapod.core.podspec.claim_spec import BETA_CLASS
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def modes_text(modes: list[str] | None) -> str:
    """Return access modes in short form, such as "RWO,ROX", in a fixed order and without repetitions.

    Upstream: GetAccessModesAsString
    """
    present = set(modes or [])
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in present)


def storage_class_of(obj: Object) -> str:
    """Return the storage class of a volume or claim, or ""; the beta annotation takes precedence over the field."""
    annotations = obj["metadata"].get("annotations") or {}
    if BETA_CLASS in annotations:
        return str(annotations[BETA_CLASS])
    return spec_of(obj).get("storageClassName") or ""


def phase_of(obj: Object) -> str:
    """Return the phase of a volume or claim, or "" if it is unset; "Terminating" while the object is being deleted."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return status_of(obj).get("phase") or ""


def _volume_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        modes_text(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase_of(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        storage_class_of(obj),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason") or "",
        age(obj),
        spec.get("volumeMode") or UNSET,
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Capacity"),
        Column("Access Modes"),
        Column("Reclaim Policy"),
        Column("Status"),
        Column("Claim"),
        Column("StorageClass"),
        Column("VolumeAttributesClass"),
        Column("Reason"),
        AGE,
        Column("VolumeMode", priority=1),
    ),
    _volume_row,
)
