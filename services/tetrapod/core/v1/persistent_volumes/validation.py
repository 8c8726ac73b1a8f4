"""Validation of PersistentVolume.

Upstream: pkg/apis/core/validation/validation.go, ValidatePersistentVolumeSpec and ValidatePersistentVolumeUpdate.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tetrapod.core.podspec import volume_sources as sources
from tetrapod.core.podspec.claim_spec import VOLUME_MODES, access_modes, unchanged_attributes_class
from tetrapod.core.podspec.scheduling import has_invalid_values, node_selector
from tetrapod.core.validation import quantities
from tetrapod.core.validation.differences import internal, spec_difference
from tetrapod.core.validation.names import dns_subdomain, known
from tetrapod.core.validation.quantities import basic_resources
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FIELD_IMMUTABLE
from tetrapod.machinery.names import name_is_dns_label

RECLAIM_POLICIES: Final = frozenset({"Delete", "Recycle", "Retain"})
MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_MOUNTABLE: Final = frozenset(
    {
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
        "storageos",
    }
)
_GA_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_Check = Callable[[Object, str], list[FieldError]]
_INLINE: Final = "in the context of inline volumes"


def _glusterfs(source: Object, path: str) -> list[FieldError]:
    errors = sources.glusterfs(source, path)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(field.invalid(f"{path}.endpointsNamespace", namespace, text))
    elif namespace is not None:
        at = f"{path}.endpointsNamespace"
        errors += [field.invalid(at, namespace, text) for text in name_is_dns_label(namespace, False)]
    return errors


def _azure_file(source: Object, path: str) -> list[FieldError]:
    errors = sources.requires("secretName", "shareName")(source, path)
    return errors + ([field.required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else [])


def _cinder(source: Object, path: str) -> list[FieldError]:
    return sources.requires("volumeID")(source, path) + sources.secret_ref_names(source, path)


# In upstream's order: the path for "more than 1 volume type", the path for its own errors, the check.
_SOURCES: Final[dict[str, tuple[str, str, _Check]]] = {
    "hostPath": ("hostPath", "hostPath", sources.host_path),
    "gcePersistentDisk": ("gcePersistentDisk", "persistentDisk", sources.gce_disk),
    "awsElasticBlockStore": ("awsElasticBlockStore", "awsElasticBlockStore", sources.aws_disk),
    "glusterfs": ("glusterfs", "glusterfs", _glusterfs),
    "flocker": ("flocker", "flocker", sources.flocker),
    "nfs": ("nfs", "nfs", sources.nfs),
    "rbd": ("rbd", "rbd", sources.requires("monitors", "image")),
    "quobyte": ("quobyte", "quobyte", sources.quobyte),
    "cephfs": ("cephFS", "cephfs", sources.requires("monitors")),
    "iscsi": ("iscsi", "iscsi", sources.iscsi_persistent),
    "cinder": ("cinder", "cinder", _cinder),
    "fc": ("fc", "fc", sources.fc),
    "flexVolume": ("flexVolume", "flexVolume", sources.flex_volume),
    "azureFile": ("azureFile", "azureFile", _azure_file),
    "vsphereVolume": ("vsphereVolume", "vsphereVolume", sources.requires("volumePath")),
    "photonPersistentDisk": ("photonPersistentDisk", "photonPersistentDisk", sources.requires("pdID")),
    "portworxVolume": ("portworxVolume", "portworxVolume", sources.requires("volumeID")),
    "azureDisk": ("azureDisk", "azureDisk", sources.azure_disk),
    "scaleIO": ("scaleIO", "scaleIO", sources.requires("gateway", "system", "volumeName")),
    "local": ("local", "local", sources.local),
    "storageos": ("storageos", "storageos", sources.storage_os_persistent),
    "csi": ("csi", "csi", sources.csi_persistent),
}


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a PersistentVolume, which must have one volume source, and the mount options annotation.

    Access modes and a positive storage capacity, the only resource, are required. Node affinity and the names of
    classes are valid. Mount options are allowed only for volume types that support them.
    """
    return _errors(obj, {})


def _errors(obj: Object, old_spec: Object) -> list[FieldError]:
    """Return the errors of a volume.

    Args:
        obj: the volume.
        old_spec: the stored spec; {} on create. If it has invalid values in its node affinity, others are accepted too.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    errors = _common(spec)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        required = affinity.get("required")
        if required is None:
            errors.append(field.required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            stored = (old_spec.get("nodeAffinity") or {}).get("required") or {}
            errors += node_selector(required, "spec.nodeAffinity.required", any_value=has_invalid_values(stored))
    errors += _source(spec, name)
    errors += _classes(spec)
    annotations = obj["metadata"].get("annotations") or {}
    if MOUNT_OPTIONS in annotations and not _MOUNTABLE.intersection(k for k, v in spec.items() if v is not None):
        path = f"metadata.annotations.{MOUNT_OPTIONS}"
        errors.append(field.forbidden(path, "may not specify mount options for this volume type"))
    return errors


def inline_volume(spec: Object, path: str) -> list[FieldError]:
    """Validate the inline volume of a VolumeAttachment: a csi volume without claim, capacity or storage class.

    Args:
        spec: a PersistentVolumeSpec.
        path: the field path of the spec, for errors.
    """
    errors = []
    if spec.get("claimRef") is not None:
        errors.append(field.forbidden(f"{path}.claimRef", f"may not be specified {_INLINE}"))
    if spec.get("capacity"):
        errors.append(field.forbidden(f"{path}.capacity", f"may not be specified {_INLINE}"))
    if spec.get("csi") is None:
        errors.append(field.required(f"{path}.csi", f"has to be specified {_INLINE}"))
    modes = spec.get("accessModes") or []
    errors += access_modes(modes, f"{path}.accessModes") if modes else [field.required(f"{path}.accessModes")]
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        errors.append(field.forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {_INLINE}"))
    if spec.get("nodeAffinity") is not None:
        errors.append(field.forbidden(f"{path}.nodeAffinity", f"may not be specified {_INLINE}"))
    errors += [replace(error, field=path + error.field.removeprefix("spec")) for error in _source(spec, "")]
    if spec.get("storageClassName"):
        errors.append(field.forbidden(f"{path}.storageClassName", f"may not be specified {_INLINE}"))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        errors.append(
            field.forbidden(f"{path}.volumeMode", f"may not specify volumeMode other than Filesystem {_INLINE}")
        )
    return errors


def _common(spec: Object) -> list[FieldError]:
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    errors = [] if modes else [field.required("spec.accessModes")]
    errors += access_modes(modes, "spec.accessModes")
    if not capacity:
        errors.append(field.required("spec.capacity"))
    if "storage" not in capacity or len(capacity) > 1:
        shown = {name: str(quantities.quantity(capacity[name])) for name in sorted(capacity)} or spec.get("capacity")
        errors.append(field.not_supported("spec.capacity", shown, ["storage"]))
    for name, value in capacity.items():
        errors += basic_resources({name: value}, "spec.capacity")
        errors += quantities.positive(quantities.quantity(value), f"spec.capacity[{name}]")
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        errors += known(policy, RECLAIM_POLICIES, "spec.persistentVolumeReclaimPolicy")
    return errors


def _source(spec: Object, name: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for kind, (more, at, check) in _SOURCES.items():
        if (source := spec.get(kind)) is None:
            continue
        count += 1
        if count > 1 and kind != "flexVolume":  # upstream does not reject flexVolume next to another type
            errors.append(field.forbidden(f"spec.{more}", "may not specify more than 1 volume type"))
            continue
        errors += check(source, f"spec.{at}")
        if kind == "iscsi":
            errors += sources.iscsi_name_length(
                source, name, "spec.iscsi.targetportal", source.get("targetPortal") or ""
            )
        if kind == "local" and spec.get("nodeAffinity") is None:
            errors.append(field.required("spec.nodeAffinity", "Local volume requires node affinity"))
    if not count:
        errors.append(field.required("spec", "must specify a volume type"))
    root = (spec.get("hostPath") or {}).get("path")
    if root and posixpath.normpath(root) == "/" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        errors.append(
            field.forbidden("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
        )
    return errors


def _classes(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if name := spec.get("storageClassName"):
        errors += dns_subdomain(name, "spec.storageClassName")
    if (mode := spec.get("volumeMode")) is not None:
        errors += known(mode, VOLUME_MODES, "spec.volumeMode")
    if (name := spec.get("volumeAttributesClassName")) is not None:
        path = "spec.volumeAttributesClassName"
        errors += dns_subdomain(name, path) if name else [field.required(path, "an empty string is disallowed")]
        if spec.get("csi") is None:
            errors.append(field.required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated PersistentVolume, whose source, volumeMode and nodeAffinity are immutable.

    There are three exceptions:

    - controllerExpandSecretRef of a csi volume may be added.
    - nodeAffinity may be added, and its beta label keys may change to their GA names. With the gate
      MutablePVNodeAffinity it may change in any way.
    - volumeAttributesClassName may change, but not be removed. Without the gate VolumeAttributesClass it is immutable.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _errors(new, old_spec)
    new_source, old_source = (_sources_of(s) for s in (spec, old_spec))
    if old_source.get("csi") and new_source.get("csi") and not old_source["csi"].get("controllerExpandSecretRef"):
        new_source["csi"] = {k: v for k, v in new_source["csi"].items() if k != "controllerExpandSecretRef"}
    kind = "PersistentVolumeSource"
    if not same(internal(kind, new_source), internal(kind, old_source)):
        text = (
            f"spec.persistentvolumesource is immutable after creation\n{spec_difference(kind, old_source, new_source)}"
        )
        errors.append(field.forbidden("spec.persistentvolumesource", text))
    if spec.get("volumeMode") != old_spec.get("volumeMode"):
        errors.append(field.invalid("volumeMode", field.as_typed(spec.get("volumeMode")), FIELD_IMMUTABLE))
    affinity = old_spec.get("nodeAffinity")
    mutable = affinity is None or feature_gates.enabled("MutablePVNodeAffinity")
    if not mutable and not _moves_beta_labels_to_ga(spec.get("nodeAffinity"), affinity):
        shown = None if spec.get("nodeAffinity") is None else internal("VolumeNodeAffinity", spec["nodeAffinity"])
        errors.append(
            field.invalid("nodeAffinity", shown, f"{FIELD_IMMUTABLE}, except for updating from beta label to GA")
        )
    errors += unchanged_attributes_class(spec, old_spec)
    if old_spec.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        errors.append(
            field.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")
        )
    return errors


def _sources_of(spec: Object) -> Object:
    return {kind: spec[kind] for kind in _SOURCES if spec.get(kind) is not None}


def _moves_beta_labels_to_ga(new: Any, old: Any) -> bool:
    """Return whether two node affinities are equal, not counting beta label keys that changed to their GA names.

    Null and an empty list equal a missing value. As upstream, the GA name of any other label is "".
    """
    if isinstance(new, dict) and isinstance(old, dict):
        return all(
            _moves_beta_labels_to_ga(new.get(k), old.get(k))
            or (k == "key" and new.get(k) == _GA_LABELS.get(old[k], ""))
            for k in {*new, *old}
        )
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_moves_beta_labels_to_ga, new, old))
    return same(new, old)
