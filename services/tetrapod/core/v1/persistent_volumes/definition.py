"""The resource definition of persistentvolumes, with defaults and warnings.

Upstream: pkg/registry/core/persistentvolume/storage/storage.go, pkg/apis/core/v1/defaults.go, pkg/api/persistentvolume.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import ATTRIBUTES_GATE, BETA_CLASS
from tetrapod.core.podspec.label_warnings import node_selector_term
from tetrapod.core.podspec.pod_resources import round_up
from tetrapod.core.podspec.volume_warnings import deprecated_source
from tetrapod.core.v1.persistent_volumes import validation
from tetrapod.core.v1.persistent_volumes.strategy import VolumeStatusStrategy, VolumeStrategy
from tetrapod.core.v1.persistent_volumes.table import TABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery.gvk import Object

_FIELDS: Final = FieldGates(GatedFields(ATTRIBUTES_GATE, ("spec.volumeAttributesClassName",)))
_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_RECYCLE: Final = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)


def definition() -> ResourceDefinition:
    """Return the resource definition of persistentvolumes: versions, strategy, subresources and columns."""
    strategy = VolumeStrategy(
        defaults=set_defaults,
        has_status=True,
        initial_status={"phase": "Pending"},
        return_deleted_object=True,
        validator=validation.validate,
        whole_update_validator=validation.validate_update,
        warnings=warnings,
        revalidates_generate_name="before finalizers",
        gated_fields=_FIELDS,
    )
    return builtin(
        "",
        "persistentvolumes",
        strategy,
        table=TABLE,
        subresources={"status": VolumeStatusStrategy(strategy)},
    )


def warnings(volume: Object, old: Object | None) -> list[str]:
    """Return warnings about deprecated fields of a PersistentVolume.

    They are two annotations, the reclaim policy Recycle, node labels in the affinity, and volume types.

    Args:
        old: not used.
    """
    spec, annotations = volume.get("spec") or {}, volume["metadata"].get("annotations") or {}
    out: list[str] = []
    if BETA_CLASS in annotations:
        out.append(
            f'metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
        )
    if _MOUNT_OPTIONS in annotations:
        out.append(
            f'metadata.annotations[{_MOUNT_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead'
        )
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        out.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
    for i, term in enumerate(((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()):
        out += node_selector_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", values=False)
    return out + deprecated_source(spec, "spec")


def set_defaults(obj: Object) -> None:
    """Set the defaults of a PersistentVolume in place.

    They are the phase Pending, the reclaim policy Retain, the volume mode Filesystem, the type of a hostPath and the
    file system of a scaleIO volume. The capacity is rounded up to a thousandth.
    """
    spec = obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    if (host_path := spec.get("hostPath")) is not None and host_path.get("type") is None:
        host_path["type"] = ""
    if (scale_io := (spec.get("scaleIO") or {})) and not scale_io.get("fsType"):
        scale_io["fsType"] = "xfs"
    if capacity := spec.get("capacity"):
        round_up(capacity)
