"""Validation of each volume source, for pods and persistent volumes.

Each function takes a source and its field path, and returns the errors.

Upstream: pkg/apis/core/validation/validation.go, validate*VolumeSource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.core.podspec.stored import stored_spec_has
from tetrapod.core.validation.names import (
    csi_driver_name,
    dns_label,
    dns_subdomain,
    errors_from,
    in_range,
    known,
    one_of,
    user_id,
)
from tetrapod.core.validation.paths import descending, file_mode, no_backsteps, not_reserved
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.regular_expressions import compile_pattern
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

HOST_PATH_TYPES: Final = frozenset(
    {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"}
)
PULL_POLICIES: Final = frozenset({"Always", "IfNotPresent", "Never"})
_CACHING: Final = frozenset({"None", "ReadOnly", "ReadWrite"})
_DISK_KINDS: Final = frozenset({"Dedicated", "Managed", "Shared"})
_MANAGED_URI: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_PAIRS: Final = "must be a host:port pair or multiple pairs separated by commas"
_RESERVED: Final = (".kubernetes.io", ".k8s.io")
_INITIATORS: Final = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[[:alnum:]]{16}$",
    "naa": r"^naa.[[:alnum:]]{32}$",
}
"""The patterns of iSCSI names. The first one needs a matcher that does not backtrack, because it may begin anywhere."""


def requires(*names: str) -> Callable[[Object, str], list[FieldError]]:
    """Return a function that validates only that the named fields of a source are set and not empty."""

    def check(source: Object, path: str) -> list[FieldError]:
        return [field.required(f"{path}.{name}") for name in names if not source.get(name)]

    return check


def key_to_path(item: Object, path: str) -> list[FieldError]:
    """Validate an item that maps a key of a Secret or ConfigMap to a path.

    `key` and `path` are required. The path is relative and does not start with `..`. `mode`, if it is set, is 0 to
    0777, and `user` the id of a user.

    Args:
        path: the field path of the item, for the errors.
    """
    errors = [field.required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    errors += not_reserved(item.get("path") or "", f"{path}.path")
    errors += file_mode(item.get("mode"), f"{path}.mode")
    return errors + user_id(item.get("user"), f"{path}.user")


def host_path(source: Object, path: str) -> list[FieldError]:
    """Validate a hostPath volume.

    `path` is required and has no `..`; `type` is one of the known types, or unset.

    Args:
        path: the field path of the volume source, for the errors.
    """
    if not source.get("path"):
        return [field.required(f"{path}.path")]
    errors = no_backsteps(source["path"], f"{path}.path")
    kind = source.get("type")
    return errors + (known(kind, HOST_PATH_TYPES, f"{path}.type") if kind is not None else [])


def local(source: Object, path: str) -> list[FieldError]:
    """Validate the source of a local persistent volume: its `path` is required and has no `..`.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return no_backsteps(source["path"], f"{path}.path") if source.get("path") else [field.required(f"{path}.path")]


def git_repo(source: Object, path: str) -> list[FieldError]:
    """Validate a gitRepo volume.

    `repository` is required. `directory`, if it is set, is a relative path without `..`.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return requires("repository")(source, path) + descending(source.get("directory") or "", f"{path}.directory")


def gce_disk(source: Object, path: str) -> list[FieldError]:
    """Validate a gcePersistentDisk volume: `pdName` is required, and `partition` is at most 255.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return requires("pdName")(source, path) + _partition(source, path)


def aws_disk(source: Object, path: str) -> list[FieldError]:
    """Validate an awsElasticBlockStore volume: `volumeID` is required, and `partition` is at most 255.

    Args:
        source: the value of the field `awsElasticBlockStore`.
        path: its field path, for the errors.
    """
    return requires("volumeID")(source, path) + _partition(source, path)


def _partition(source: Object, path: str) -> list[FieldError]:
    partition = source.get("partition") or 0
    return (
        []
        if 0 <= partition <= 255
        else [field.invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive")]
    )


def nfs(source: Object, path: str) -> list[FieldError]:
    """Validate an nfs volume: `server` and `path` are required, and `path` is absolute.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = requires("server", "path")(source, path)
    if not (source.get("path") or "").startswith("/"):
        errors.append(field.invalid(f"{path}.path", source.get("path") or "", "must be an absolute path"))
    return errors


def iscsi(source: Object, path: str) -> list[FieldError]:
    """Validate an iscsi volume of a pod.

    `targetPortal` and `iqn` are required. `iqn` and `initiatorName` have one of the formats iqn, eui and naa. `lun` is
    at most 255. CHAP authentication requires a secretRef.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return _iscsi(source, path, "must be valid format starting with iqn, eui, or naa")


def iscsi_persistent(source: Object, path: str) -> list[FieldError]:
    """Validate the iscsi source of a persistent volume.

    The rules are those of `iscsi`, and a secretRef must have a name. An error about an unknown format of `iqn` or
    `initiatorName` has another text.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = _iscsi(source, path, "must be valid format")
    if (ref := source.get("secretRef")) is not None and not ref.get("name"):
        errors.append(field.required(f"{path}.secretRef.name"))
    return errors


def _iscsi(source: Object, path: str, no_prefix: str) -> list[FieldError]:
    errors = requires("targetPortal")(source, path)
    if name := source.get("iqn"):
        errors += _initiator(name, f"{path}.iqn", no_prefix)
    else:
        errors.append(field.required(f"{path}.iqn"))
    errors += in_range(source.get("lun") or 0, 0, 255, f"{path}.lun")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(field.required(f"{path}.secretRef"))
    if (name := source.get("initiatorName")) is not None:
        errors += _initiator(name, f"{path}.initiatorname", no_prefix)
    return errors


def _initiator(name: str, path: str, no_prefix: str) -> list[FieldError]:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        return [field.invalid(path, name, no_prefix)]
    return [] if compile_pattern(pattern).search(name) else [field.invalid(path, name, "must be valid format")]


def iscsi_name_length(source: Object, owner: str, path: str, shown: str) -> list[FieldError]:
    """Reject an iscsi source with an initiatorName if `<volume name>:<target portal>` has more than 64 characters.

    Args:
        owner: the name of the volume.
        path: the field path of the error.
        shown: the value to print in the error.
    """
    if source.get("initiatorName") is None or len(f"{owner}:{source.get('targetPortal') or ''}") <= 64:
        return []
    text = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
        "specified."
    )
    return [field.invalid(path, shown, text)]


def glusterfs(source: Object, path: str) -> list[FieldError]:
    """Validate a glusterfs volume: `endpoints` and `path` are required.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return requires("endpoints", "path")(source, path)


def flocker(source: Object, path: str) -> list[FieldError]:
    """Validate a flocker volume: it has either a datasetName without slashes or a datasetUUID.

    Args:
        path: the field path of the volume source, for the errors.
    """
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    errors = []
    if not name and not uuid:
        errors.append(field.required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        errors.append(
            field.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
        )
    if "/" in name:
        errors.append(field.invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def cinder(source: Object, path: str) -> list[FieldError]:
    """Validate a cinder volume of a pod: `volumeID` is required, and a secretRef must have a name.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return requires("volumeID")(source, path) + _local_ref(source, path)


def _local_ref(source: Object, path: str) -> list[FieldError]:
    ref = source.get("secretRef")
    return [field.required(f"{path}.secretRef.name")] if ref is not None and not ref.get("name") else []


def secret_ref_names(source: Object, path: str) -> list[FieldError]:
    """Require the name and the namespace of the source's secretRef, if it has one.

    Args:
        path: the field path of the volume source, for the errors.
    """
    ref = source.get("secretRef")
    return (
        []
        if ref is None
        else [field.required(f"{path}.secretRef.{key}") for key in ("name", "namespace") if not ref.get(key)]
    )


def quobyte(source: Object, path: str) -> list[FieldError]:
    """Validate a quobyte volume.

    `registry` (pairs `host:port`, separated by commas) and `volume` are required, and `tenant` has at most 64
    characters. If the tenant is too long, `registry` is not checked.

    Args:
        path: the field path of the volume source, for the errors.
    """
    registry, errors = source.get("registry") or "", []
    if not registry:
        errors.append(field.required(f"{path}.registry", _PAIRS))
    elif len(source.get("tenant") or "") >= 65:
        errors.append(field.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        errors += [
            field.invalid(f"{path}.registry", registry, _PAIRS) for pair in registry.split(",") if pair.count(":") != 1
        ]
    return errors + requires("volume")(source, path)


def fc(source: Object, path: str) -> list[FieldError]:
    """Validate an fc volume: it has either wwids, or targetWWNs with a lun of at most 255.

    Args:
        path: the field path of the volume source, for the errors.
    """
    names, ids, lun = source.get("targetWWNs") or [], source.get("wwids") or [], source.get("lun")
    errors = []
    if not names and not ids:
        errors.append(field.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if names and ids:
        errors.append(
            field.invalid(f"{path}.targetWWNs", names, "targetWWNs and wwids can not be specified simultaneously")
        )
    if names and lun is None:
        errors.append(field.required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names and lun is not None:
        errors += in_range(lun, 0, 255, f"{path}.lun")
    return errors


def flex_volume(source: Object, path: str) -> list[FieldError]:
    """Validate a flexVolume.

    `driver` is required. Keys of `options` must not be in the domains kubernetes.io and k8s.io or below them.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = requires("driver")(source, path)
    for key in source.get("options") or {}:
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            errors.append(
                field.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")
            )
    return errors


def azure_disk(source: Object, path: str) -> list[FieldError]:
    """Validate an azureDisk volume.

    `diskName` and `diskURI` are required. `cachingMode` and `kind`, if they are set, have known values. The URI begins
    with "/subscriptions/" for the kind Managed, and with "https://" for other kinds.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = requires("diskName", "diskURI")(source, path)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI") or ""
    errors += known(caching, _CACHING, f"{path}.cachingMode") if caching is not None else []
    errors += known(kind, _DISK_KINDS, f"{path}.kind") if kind is not None else []
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(field.not_supported(f"{path}.diskURI", uri, [_MANAGED_URI], typed=False))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        errors.append(field.not_supported(f"{path}.diskURI", uri, [_BLOB_URI], typed=False))
    return errors


def storage_os(source: Object, path: str) -> list[FieldError]:
    """Validate a storageos volume of a pod.

    `volumeName` is required. It and `volumeNamespace` are DNS labels. A secretRef must have a name.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return _storage_os(source, path) + _local_ref(source, path)


def storage_os_persistent(source: Object, path: str) -> list[FieldError]:
    """Validate the storageos source of a persistent volume.

    `volumeName` is required. It and `volumeNamespace` are DNS labels. A secretRef must have a name and a namespace.

    Args:
        path: the field path of the volume source, for the errors.
    """
    return _storage_os(source, path) + secret_ref_names(source, path)


def _storage_os(source: Object, path: str) -> list[FieldError]:
    name, namespace = source.get("volumeName") or "", source.get("volumeNamespace") or ""
    errors = dns_label(name, f"{path}.volumeName") if name else [field.required(f"{path}.volumeName")]
    return errors + (dns_label(namespace, f"{path}.volumeNamespace") if namespace else [])


def csi_inline(source: Object, path: str) -> list[FieldError]:
    """Validate a csi volume of a pod: `driver` is the name of a CSI driver, and nodePublishSecretRef has a valid name.

    As upstream, the error about an invalid name has the path `name` of the source instead of
    `nodePublishSecretRef.name`.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = csi_driver_name(source.get("driver") or "", f"{path}.driver")
    if (ref := source.get("nodePublishSecretRef")) is not None:
        if name := ref.get("name"):
            errors += errors_from(is_dns1123_subdomain, name, f"{path}.name")
        else:
            errors.append(field.required(f"{path}.nodePublishSecretRef.name"))
    return errors


def csi_persistent(source: Object, path: str) -> list[FieldError]:
    """Validate the csi source of a persistent volume.

    `driver` is the name of a CSI driver, and `volumeHandle` is required. Each secret reference that is set must have a
    valid name and namespace.

    Args:
        path: the field path of the volume source, for the errors.
    """
    errors = csi_driver_name(source.get("driver") or "", f"{path}.driver") + requires("volumeHandle")(source, path)
    for key in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if (ref := source.get(key)) is not None:
            name, namespace = ref.get("name") or "", ref.get("namespace") or ""
            errors += dns_subdomain(name, f"{path}.{key}.name") if name else [field.required(f"{path}.{key}.name")]
            errors += (
                dns_label(namespace, f"{path}.{key}.namespace")
                if namespace
                else [field.required(f"{path}.{key}.namespace")]
            )
    return errors


def image(source: Object, path: str) -> list[FieldError]:
    """Validate an image volume: `reference` is required, and `pullPolicy` is one of the known policies.

    Args:
        path: the field path of the volume source, for the errors.
    """
    accepted = source.get("reference") or stored_spec_has(_has_empty_image)
    errors = [] if accepted else [field.required(f"{path}.reference")]
    return errors + one_of(source.get("pullPolicy"), PULL_POLICIES, f"{path}.pullPolicy")


def _has_empty_image(spec: Object) -> bool:
    images = (volume.get("image") for volume in spec.get("volumes") or ())
    return any(image is not None and not image.get("reference") for image in images)
