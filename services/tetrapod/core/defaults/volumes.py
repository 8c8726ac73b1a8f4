"""Defaults of PersistentVolumes, PersistentVolumeClaims and storage.k8s.io. Upstream: pkg/apis/{core,storage}/v1/defaults.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


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
