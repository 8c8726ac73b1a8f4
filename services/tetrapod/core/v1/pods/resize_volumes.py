"""Validation of the volumes in `pods/resize`: the size limit of an emptyDir volume in memory may change.

It applies only with the gate; without it a resize keeps the stored volumes.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodResize, part 5.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation.quantities import quantity
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

GATE: Final = "InPlacePodVerticalScalingMemoryBackedVolumes"
MEMORY: Final = "Memory"
"""The medium of emptyDir volumes that are in memory."""


def validate_volumes(new: list[Object], old: list[Object]) -> list[FieldError]:
    """Validate the volumes of a resized pod.

    Volumes keep their number, names and order, and everything but the size limit. A size limit is neither added nor
    removed.

    Args:
        new: the volumes of the new pod spec.
        old: those of the stored one.
    """
    if len(new) != len(old):
        return [field.forbidden("spec.volumes", "volumes may not be added or removed on resize")]
    errors: list[FieldError] = []
    for i, (volume, old_volume) in enumerate(zip(new, old, strict=True)):
        path = f"spec.volumes[{i}]"
        if volume.get("name") != old_volume.get("name"):
            errors.append(field.forbidden(f"{path}.name", "volumes may not be renamed or reordered on resize"))
        elif not same(_without_limit(volume, old_volume), _without_limit(old_volume, volume)):
            text = "only sizeLimit of memory-backed emptyDir volumes is mutable on resize"
            errors.append(field.forbidden(path, text))
        elif volume.get("emptyDir") is not None:
            errors += _size_limit(volume["emptyDir"], old_volume["emptyDir"], f"{path}.emptyDir.sizeLimit")
    return errors


def _without_limit(volume: Object, other: Object) -> Object:
    """Return the volume without the size limit of its emptyDir, if `other` is an emptyDir volume too."""
    if volume.get("emptyDir") is None or other.get("emptyDir") is None:
        return volume
    return {**volume, "emptyDir": {k: v for k, v in volume["emptyDir"].items() if k != "sizeLimit"}}


def _size_limit(empty_dir: Object, old_empty_dir: Object, path: str) -> list[FieldError]:
    limit, old_limit = empty_dir.get("sizeLimit"), old_empty_dir.get("sizeLimit")
    if _is_limited(limit) is not _is_limited(old_limit):
        return [field.forbidden(path, "adding or removing sizeLimit on an existing volume is not allowed")]
    if changes_limit(limit, old_limit) and empty_dir.get("medium") != MEMORY:
        return [field.forbidden(path, "sizeLimit is only mutable for memory-backed emptyDir volumes")]
    return []


def changes_limit(limit: Any, old_limit: Any) -> bool:
    """Return whether two size limits are different quantities; False if one is None."""
    return limit is not None and old_limit is not None and quantity(limit) != quantity(old_limit)


def _is_limited(limit: Any) -> bool:
    return limit is not None and quantity(limit) != quantity(0)
