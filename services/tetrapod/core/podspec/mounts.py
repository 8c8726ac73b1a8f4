"""Validation of the volume mounts and block devices of a container.

Upstream: pkg/apis/core/validation/validation.go, ValidateVolumeMounts and ValidateVolumeDevices.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import known
from tetrapod.core.validation.paths import descending, no_backsteps
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_PROPAGATIONS: Final = frozenset({"Bidirectional", "HostToContainer", "None"})
_BIND_OPTIONS: Final = frozenset({"nodev", "noexec", "nosuid"})
_READ_ONLY: Final = frozenset({"Disabled", "Enabled", "IfPossible"})


def mounts(
    listed: list[Object], raw: list[Object], volumes: dict[str, Object], container: Object, path: str
) -> list[FieldError]:
    """Validate the volumeMounts of a container.

    `name` refers to a volume of the pod. `mountPath` is required and unique. The optional fields are checked by
    `_parts`.

    Args:
        listed: the volumeMounts.
        raw: the container's volumeDevices, which must not share names or paths with the mounts.
        volumes: the pod's volumes by name.
        container: the container itself, because only privileged ones may propagate mounts in both directions.
        path: the field path of the volumeMounts, for the errors.
    """
    errors: list[FieldError] = []
    by_device = {d.get("name") or "": d.get("devicePath") or "" for d in raw}
    seen: set[str] = set()
    for i, mount in enumerate(listed):
        at, name, mount_path = f"{path}[{i}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(field.required(f"{at}.name"))
        if name not in volumes:
            errors.append(field.not_found(f"{at}.name", name))
        if not mount_path:
            errors.append(field.required(f"{at}.mountPath"))
        if mount_path in seen:
            errors.append(field.invalid(f"{at}.mountPath", mount_path, "must be unique"))
        seen.add(mount_path)
        if name in by_device:
            errors.append(field.invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if mount_path in by_device.values():
            errors.append(
                field.invalid(f"{at}.mountPath", mount_path, "must not already exist as a path in volumeDevices")
            )
        errors += _parts(mount, volumes.get(name), container, path, at)
    return errors


def _parts(mount: Object, volume: Object | None, container: Object, path: str, at: str) -> list[FieldError]:
    """Validate the optional fields of a mount.

    They are subPath, subPathExpr, mountPropagation, recursiveReadOnly and bindMountOptions.

    - subPath and subPathExpr are relative paths without `..`, and only one of them may be set. Image volumes have no
      subPathExpr.
    - Only privileged containers may have the propagation Bidirectional.
    - recursiveReadOnly requires readOnly and no propagation.

    Args:
        volume: the mounted volume; None if it does not exist.
        path: the path of the list of mounts. Upstream reports some errors there.
        at: the path of this mount.
    """
    errors: list[FieldError] = []
    sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if volume is not None and volume.get("image") is not None:
        errors += (
            [field.invalid(f"{at}.subPathExpr", expression, "not allowed in image volume sources")]
            if expression
            else []
        )
    if sub:
        errors += descending(sub, f"{path}.subPath")
    if expression:
        if sub:
            errors.append(
                field.invalid(f"{at}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
            )
        errors += descending(expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        errors += known(propagation, _PROPAGATIONS, f"{path}.mountPropagation")
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(field.forbidden(f"{path}.mountPropagation", text))
    errors += _recursive_read_only(mount, propagation, f"{path}.recursiveReadOnly")
    return errors + _bind_options(mount.get("bindMountOptions") or [], volume, f"{at}.bindMountOptions")


def _bind_options(options: list[str], volume: Object | None, path: str) -> list[FieldError]:
    """Validate bindMountOptions: known and unique, and none for image volumes.

    Args:
        options: the options.
        volume: the mounted volume; None if it does not exist.
        path: the field path of the options, for the errors.
    """
    errors: list[FieldError] = []
    repeated_indexes = repeated(options)
    for i, option in enumerate(options):
        if option not in _BIND_OPTIONS:
            errors.append(field.not_supported(f"{path}[{i}]", option, _BIND_OPTIONS))
        if i in repeated_indexes:
            errors.append(field.duplicate(f"{path}[{i}]", option))
    if options and volume is not None and volume.get("image") is not None:
        errors.append(field.invalid(path, options, "bindMountOptions may not be used with image volumes"))
    return errors


def _recursive_read_only(mount: Object, propagation: str | None, path: str) -> list[FieldError]:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return []
    if mode not in _READ_ONLY:
        return [field.not_supported(path, mode, _READ_ONLY)]
    errors = [] if mount.get("readOnly") else [field.forbidden(path, "may only be specified when readOnly is true")]
    if propagation not in (None, "None"):
        errors.append(field.forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def devices(listed: list[Object], mounted: list[Object], volumes: dict[str, Object], path: str) -> list[FieldError]:
    """Validate volumeDevices, which may only use volumes of type persistentVolumeClaim or ephemeral.

    `name` and `devicePath` are required and unique, and the path has no `..`.

    Args:
        listed: the volumeDevices.
        mounted: the container's volumeMounts, which must not share names or paths with the devices.
        volumes: the pod's volumes by name.
        path: the field path of the volumeDevices, for the errors.
    """
    errors: list[FieldError] = []
    by_mount = {m.get("name") or "": m.get("mountPath") or "" for m in mounted}
    names: set[str] = set()
    paths: set[str] = set()
    for i, device in enumerate(listed):
        at, name, device_path = f"{path}[{i}]", device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if not name:
            errors.append(field.required(f"{at}.name"))
        if name in names:
            errors.append(field.invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            errors.append(field.not_found(f"{at}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(field.invalid(f"{at}.name", name, text))
        if not device_path:
            errors.append(field.required(f"{at}.devicePath"))
        if device_path in paths:
            errors.append(field.invalid(f"{at}.devicePath", device_path, "must be unique"))
        if device_path and no_backsteps(device_path, ""):
            errors.append(field.invalid(f"{at}.devicePath", device_path, "can not contain backsteps ('..')"))
        else:
            paths.add(device_path)
        if name in by_mount:
            errors.append(field.invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if device_path in by_mount.values():
            errors.append(
                field.invalid(f"{at}.devicePath", device_path, "must not already exist as a path in volumeMounts")
            )
        if name:
            names.add(name)
    return errors
