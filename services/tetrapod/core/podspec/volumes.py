"""Validation of the volumes of a pod.

Upstream: pkg/apis/core/validation/validation.go, ValidateVolumes and validateVolumeSource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.core.podspec import volume_sources as sources
from tetrapod.core.podspec.claim_spec import claim_spec, template_metadata
from tetrapod.core.podspec.downward import VOLUME_FIELDS, field_ref, resource_ref
from tetrapod.core.podspec.projected import projected
from tetrapod.core.validation.names import dns_label, user_id
from tetrapod.core.validation.paths import file_mode, not_reserved
from tetrapod.core.validation.quantities import quantity
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

_MORE: Final = "may not specify more than 1 volume type"
_Check = Callable[[Object, str], list[FieldError]]


def volumes(listed: list[Object], pod_name: str, path: str) -> tuple[dict[str, Object], list[FieldError]]:
    """Validate the volumes of a pod or pod template.

    Names are unique DNS labels, and each volume has exactly one valid source. No volume may use the claim that is
    created for an ephemeral volume of the same pod.

    Args:
        listed: the volumes.
        pod_name: the pod's name; "" for pod templates.
        path: the field path of the list, for the errors.

    Returns:
        The valid volumes by name, and the errors.
    """
    errors: list[FieldError] = []
    ephemeral_claims = (
        {f"{pod_name}-{v.get('name')}" for v in listed if v.get("ephemeral") is not None} if pod_name else set()
    )
    valid: dict[str, Object] = {}
    for i, volume in enumerate(listed):
        at = f"{path}[{i}]"
        name = volume.get("name") or ""
        volume_errors = _source(volume, name, pod_name, at)
        volume_errors += dns_label(name, f"{at}.name") if name else [field.required(f"{at}.name")]
        if name in valid:
            volume_errors.append(field.duplicate(f"{at}.name", name))
        if volume_errors:
            errors += volume_errors
        else:
            valid[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        if claim and claim in ephemeral_claims:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(field.invalid(f"{at}.persistentVolumeClaim.claimName", claim, text))
    return valid, errors


def _source(volume: Object, name: str, pod_name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for kind, (more, at, check) in _SOURCES.items():
        if (source := volume.get(kind)) is None:
            continue
        count += 1
        if count > 1:
            errors.append(field.forbidden(f"{path}.{more}", _MORE))
        else:
            errors += check(source, f"{path}.{at}")
            if kind == "ephemeral" and pod_name and name:
                errors += _claim_name(f"{pod_name}-{name}", name, path)
        if kind == "iscsi":
            errors += sources.iscsi_name_length(source, name, f"{path}.name", name)
    return errors if count else [field.required(path, "must specify a volume type")]


def _claim_name(claim: str, name: str, path: str) -> list[FieldError]:
    return [
        field.invalid(f"{path}.name", name, f"PVC name {go_quote(claim)}: {text}")
        for text in is_dns1123_subdomain(claim)
    ]


_LARGEST_DIRECTORY_MODE: Final = 0o1777


def _empty_dir(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    errors: list[FieldError] = []
    if limit is not None and quantity(limit).sign < 0:
        errors.append(field.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    if (mode := source.get("mode")) is not None and not 0 <= mode <= _LARGEST_DIRECTORY_MODE:
        text = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.append(field.invalid(f"{path}.mode", mode, text))
    return errors


def _items_source(name_key: str) -> _Check:
    """Return a function that validates a Secret or ConfigMap volume, given the source and its field path.

    The name, in the field `name_key`, is required; `items`, file modes and users must be valid.
    """

    def check(source: Object, path: str) -> list[FieldError]:
        errors = [] if source.get(name_key) else [field.required(f"{path}.{name_key}")]
        errors += file_mode(source.get("defaultMode"), f"{path}.defaultMode")
        errors += user_id(source.get("defaultUser"), f"{path}.defaultUser")
        for i, item in enumerate(source.get("items") or ()):
            errors += sources.key_to_path(item, f"{path}.items[{i}]")
        return errors

    return check


def _downward(source: Object, path: str) -> list[FieldError]:
    errors = file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    errors += user_id(source.get("defaultUser"), f"{path}.defaultUser")
    for item in source.get("items") or ():
        errors += downward_file(item, path)
    return errors


def downward_file(item: Object, path: str) -> list[FieldError]:
    """Validate an item of a downwardAPI volume.

    Its path is relative and does not start with `..`, and it has exactly one of fieldRef and resourceFieldRef, and a
    valid mode and user.

    Args:
        path: the field path of the source, where upstream reports the errors.
    """
    errors = [] if item.get("path") else [field.required(f"{path}.path")]
    errors += not_reserved(item.get("path") or "", f"{path}.path")
    ref, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if ref is not None:
        errors += field_ref(ref, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            errors.append(
                field.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
            )
    elif resource is not None:
        errors += resource_ref(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        errors.append(field.required(path, "one of fieldRef and resourceFieldRef is required"))
    errors += file_mode(item.get("mode"), f"{path}.mode")
    return errors + user_id(item.get("user"), f"{path}.user")


def _projected(source: Object, path: str) -> list[FieldError]:
    errors = file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    errors += user_id(source.get("defaultUser"), f"{path}.defaultUser")
    return errors + projected(source, path, downward_file)


def _ephemeral(source: Object, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    at = f"{path}.volumeClaimTemplate"
    if template is None:
        return [field.required(at)]
    errors = template_metadata(template.get("metadata") or {}, f"{at}.metadata")
    return errors + claim_spec(template.get("spec") or {}, f"{at}.spec", template=True)


# By JSON name, in upstream's order: the path for "more than 1 volume type", the path for its own errors, the check.
_SOURCES: Final[dict[str, tuple[str, str, _Check]]] = {
    "emptyDir": ("emptyDir", "emptyDir", _empty_dir),
    "hostPath": ("hostPath", "hostPath", sources.host_path),
    "gitRepo": ("gitRepo", "gitRepo", sources.git_repo),
    "gcePersistentDisk": ("gcePersistentDisk", "persistentDisk", sources.gce_disk),
    "awsElasticBlockStore": ("awsElasticBlockStore", "awsElasticBlockStore", sources.aws_disk),
    "secret": ("secret", "secret", _items_source("secretName")),
    "nfs": ("nfs", "nfs", sources.nfs),
    "iscsi": ("iscsi", "iscsi", sources.iscsi),
    "glusterfs": ("glusterfs", "glusterfs", sources.glusterfs),
    "flocker": ("flocker", "flocker", sources.flocker),
    "persistentVolumeClaim": ("persistentVolumeClaim", "persistentVolumeClaim", sources.requires("claimName")),
    "rbd": ("rbd", "rbd", sources.requires("monitors", "image")),
    "cinder": ("cinder", "cinder", sources.cinder),
    "cephfs": ("cephFS", "cephfs", sources.requires("monitors")),
    "quobyte": ("quobyte", "quobyte", sources.quobyte),
    "downwardAPI": ("downwarAPI", "downwardAPI", _downward),
    "fc": ("fc", "fc", sources.fc),
    "flexVolume": ("flexVolume", "flexVolume", sources.flex_volume),
    "configMap": ("configMap", "configMap", _items_source("name")),
    "azureFile": ("azureFile", "azureFile", sources.requires("secretName", "shareName")),
    "vsphereVolume": ("vsphereVolume", "vsphereVolume", sources.requires("volumePath")),
    "photonPersistentDisk": ("photonPersistentDisk", "photonPersistentDisk", sources.requires("pdID")),
    "portworxVolume": ("portworxVolume", "portworxVolume", sources.requires("volumeID")),
    "azureDisk": ("azureDisk", "azureDisk", sources.azure_disk),
    "storageos": ("storageos", "storageos", sources.storage_os),
    "projected": ("projected", "projected", _projected),
    "scaleIO": ("scaleIO", "scaleIO", sources.requires("gateway", "system", "volumeName")),
    "csi": ("csi", "csi", sources.csi_inline),
    "ephemeral": ("ephemeral", "ephemeral", _ephemeral),
    "image": ("image", "image", sources.image),
}
