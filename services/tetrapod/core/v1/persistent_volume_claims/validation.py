"""Validation of PersistentVolumeClaim, its updates and its status.

Upstream: pkg/apis/core/validation/validation.go, ValidatePersistentVolumeClaim and related functions.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import BETA_CLASS, claim_spec, unchanged_attributes_class
from tetrapod.core.v1 import volume_health
from tetrapod.core.validation import quantities
from tetrapod.core.validation.differences import spec_difference
from tetrapod.core.validation.names import errors_from, immutable
from tetrapod.core.validation.quantities import basic_resources, quantity
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name
from tetrapod.machinery.quantity import Quantity

_POINTERS: Final = frozenset(
    {"selector", "storageClassName", "volumeMode", "dataSource", "dataSourceRef", "volumeAttributesClassName"}
)
"""Fields of a claim's spec that are pointers upstream, so an empty value differs from an unset one."""
_RESIZE_STATUSES: Final = frozenset(
    {
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizePending",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
    }
)
_IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a PersistentVolumeClaim by the rules of `claim_spec` (core/podspec/claim_spec.py)."""
    return claim_spec(obj.get("spec") or {}, "spec")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated claim, whose spec is immutable with four exceptions.

    - resources.requests.storage of a bound claim may grow, or shrink to more than status.capacity.
    - volumeAttributesClassName of a bound claim may change, with the gate VolumeAttributesClass.
    - volumeName may be set once.
    - storageClassName may be set, if no storage class annotation contradicts it.
    """
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = claim_spec(new_spec, "spec", stored=old_spec)
    spec, old_copy = dict(new_spec), dict(old_spec)
    if not old_copy.get("volumeName"):
        old_copy["volumeName"] = spec.get("volumeName")
    annotations, old_annotations = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if _class_from_annotation(
        old_annotations, annotations, old_copy.get("storageClassName"), spec.get("storageClassName")
    ):
        spec.pop("storageClassName", None)
    else:
        errors += immutable(
            annotations.get(BETA_CLASS, ""), old_annotations.get(BETA_CLASS, ""), f"metadata.annotations.{BETA_CLASS}"
        )
        name = spec.get("storageClassName")
        if (
            name is not None
            and old_copy.get("storageClassName") is None
            and old_annotations.get(BETA_CLASS, name) == name
        ):
            del spec["storageClassName"]
    if (new.get("status") or {}).get("phase") == "Bound":
        _keep_size_and_attributes(spec, old_copy)
    if _comparable(spec) != _comparable(old_copy):
        errors.append(
            field.forbidden(
                "spec", f"{_IMMUTABLE_SPEC}\n{spec_difference('PersistentVolumeClaimSpec', old_copy, spec)}"
            )
        )
    errors += _shrinking(new_spec, old_spec, old)
    errors += immutable(new_spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode", typed=True)
    errors += unchanged_attributes_class(new_spec, old_spec)
    return errors + _attributes_class(
        new_spec.get("volumeAttributesClassName"), old_spec.get("volumeAttributesClassName"), old
    )


def _class_from_annotation(old: Object, new: Object, old_class: str | None, new_class: str | None) -> bool:
    """Return whether an update moves the storage class from the beta annotation into spec.storageClassName.

    Args:
        old: the stored annotations.
        new: the new annotations.
        old_class: the stored spec.storageClassName.
        new_class: the new spec.storageClassName.
    """
    if BETA_CLASS not in old or old_class is not None:
        return False
    annotated_class = old[BETA_CLASS]
    return bool(new_class == annotated_class and new.get(BETA_CLASS, annotated_class) == annotated_class)


def _keep_size_and_attributes(spec: Object, old_spec: Object) -> None:
    """Copy the storage request and volumeAttributesClassName from `old_spec` to `spec`, in place.

    A bound claim may change both, and the comparison that follows then ignores them. Objects inside `spec` are not
    changed.
    """
    requests = (spec.get("resources") or {}).get("requests")
    if requests is not None:
        merged_requests = {**requests}
        size = ((old_spec.get("resources") or {}).get("requests") or {}).get("storage")
        merged_requests["storage"] = size
        spec["resources"] = {**spec["resources"], "requests": merged_requests}
    spec["volumeAttributesClassName"] = old_spec.get("volumeAttributesClassName")


def _comparable(spec: Object) -> Object:
    """Return a copy of the spec for a comparison with upstream's semantic equality.

    Empty values are left out, except of fields that are pointers upstream, and quantities are parsed.
    """
    semantic = {k: v for k, v in spec.items() if (v is not None if k in _POINTERS else v not in (None, "", [], {}))}
    if resources := semantic.get("resources"):
        semantic["resources"] = {
            part: {k: quantity(v) for k, v in listed.items()}
            for part, listed in resources.items()
            if listed and isinstance(listed, dict)
        }
    return semantic


def _size(spec: Object) -> Quantity:
    return quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage"))


def _shrinking(new_spec: Object, old_spec: Object, old: Object) -> list[FieldError]:
    """Reject a smaller storage request, unless it is still larger than the actual capacity (status.capacity).

    That exception lets a user cancel a failed expansion.

    Args:
        new_spec: the new spec.
        old_spec: the stored spec.
        old: the stored claim.
    """
    if _size(new_spec) >= _size(old_spec):
        return []
    capacity = quantity(((old.get("status") or {}).get("capacity") or {}).get("storage"))
    if _size(new_spec) > capacity:
        return []
    return [field.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _attributes_class(new_class: str | None, old_class: str | None, old: Object) -> list[FieldError]:
    """Reject the removal of volumeAttributesClassName once status.currentVolumeAttributesClassName is set.

    Args:
        new_class: the new class; None or "" removes it.
        old_class: the stored class.
        old: the stored claim.
    """
    if new_class == old_class or new_class or (old.get("status") or {}).get("currentVolumeAttributesClassName") is None:
        return []
    text = (
        f"update to {'nil' if new_class is None else 'empty string'} is forbidden when "
        "status.currentVolumeAttributesClassName is not nil"
    )
    return [field.forbidden("spec.volumeAttributesClassName", text)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a claim: capacity, health, and names, amounts and states of allocated resources.

    As upstream, it also requires spec.accessModes.
    """
    errors: list[FieldError] = []
    if not (new.get("spec") or {}).get("accessModes"):
        errors.append(field.required("Spec.accessModes"))
    status = new.get("status") or {}
    errors += basic_resources(status.get("capacity"), "status.capacity")
    health, stored_health = ((obj.get("status") or {}).get("healthStatus") or {} for obj in (new, old))
    errors += volume_health.reasons(health, "status.healthStatus")
    for name, value in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _resource_key(name, "status.allocatedResourceStatuses")
        if value not in _RESIZE_STATUSES:
            errors.append(field.not_supported("status.allocatedResourceStatuses", name, _RESIZE_STATUSES))
    for name, value in (status.get("allocatedResources") or {}).items():
        at = f"status.allocatedResources[{name}]"
        errors += (
            _resource_key(name, "status.allocatedResources")
            or basic_resources({name: value}, "status.allocatedResources")
            or quantities.amount("storage", quantity(value), at)
        )
    return errors + volume_health.declared(health, stored_health, "status.healthStatus")


def _resource_key(name: str, path: str) -> list[FieldError]:
    if errors := errors_from(is_qualified_name, name, path):
        return errors
    return [field.not_supported(path, name, ["storage"])] if quantities.is_native(name) and name != "storage" else []
