"""Defaults of PersistentVolumes, PersistentVolumeClaims and storage.k8s.io. Upstream: pkg/apis/{core,storage}/v1/defaults.go."""

from __future__ import annotations

from tetrapod.core.podspec.defaults import default_claim_spec
from tetrapod.core.podspec.resource_lists import round_up
from tetrapod.machinery.gvk import Object


def default_persistent_volume(obj: Object) -> None:
    """Set the defaults of a PersistentVolume."""
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


def default_persistent_volume_claim(obj: Object) -> None:
    """Set the defaults of a PersistentVolumeClaim."""
    default_claim_spec(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"


def default_storage_class(obj: Object) -> None:
    """Set the defaults of a StorageClass."""
    if obj.get("reclaimPolicy") is None:
        obj["reclaimPolicy"] = "Delete"
    if obj.get("volumeBindingMode") is None:
        obj["volumeBindingMode"] = "Immediate"


def default_csi_driver(obj: Object) -> None:
    """Set the defaults of a CSIDriver."""
    spec = obj.setdefault("spec", {})
    for field, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
        ("preventPodSchedulingIfMissing", False),
    ):
        if spec.get(field) is None:
            spec[field] = value
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
