"""Validation of PersistentVolumeClaim, and of the claim templates of ephemeral volumes.

Upstream: pkg/apis/core/validation/validation.go, ValidatePersistentVolumeClaim and related functions.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation import quantities
from tetrapod.core.validation.names import complaints, dns_subdomain, immutable, known
from tetrapod.core.validation.quantities import quantity
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_qualified_name, name_is_dns_label
from tetrapod.machinery.quantity import Quantity

ACCESS_MODES: Final = frozenset({"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"})
VOLUME_MODES: Final = frozenset({"Block", "Filesystem"})
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_POINTERS: Final = frozenset({"selector", "storageClassName", "volumeMode", "dataSource", "dataSourceRef", "volumeAttributesClassName"})
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
_ONLY: Final = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def validate(obj: Object) -> list[FieldError]:
    """Validate a new PersistentVolumeClaim."""
    return claim_spec(obj.get("spec") or {}, "spec")


def access_modes(modes: list[str], path: str) -> list[FieldError]:
    """Validate access modes; ReadWriteOncePod cannot be combined with other modes."""
    errors: list[FieldError] = []
    for mode in modes:
        errors += known(mode, ACCESS_MODES, path)
    if "ReadWriteOncePod" in modes and ACCESS_MODES.intersection(modes) - {"ReadWriteOncePod"}:
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def claim_spec(spec: Object, path: str) -> list[FieldError]:
    """Validate the spec of a claim or of a claim template."""
    modes = spec.get("accessModes") or []
    errors = [] if modes else [field.required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += validate_label_selector(spec.get("selector"), f"{path}.selector")
    errors += access_modes(modes, f"{path}.accessModes")
    errors += _storage(((spec.get("resources") or {}).get("requests") or {}).get("storage"), f"{path}.resources[storage]")
    if name := spec.get("storageClassName"):
        errors += dns_subdomain(name, f"{path}.storageClassName")
    if (mode := spec.get("volumeMode")) is not None:
        errors += known(mode, VOLUME_MODES, f"{path}.volumeMode")
    errors += _data_sources(spec, path)
    if name := spec.get("volumeAttributesClassName"):
        errors += dns_subdomain(name, f"{path}.volumeAttributesClassName")
    return errors


def _storage(value: Any, path: str) -> list[FieldError]:
    if value is None:
        return [field.required(path)]
    size = quantity(value)
    return quantities.positive(size, path) or quantities.amount("storage", size, path)


def _data_sources(spec: Object, path: str) -> list[FieldError]:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    errors: list[FieldError] = []
    if source is not None:
        errors += _data_source(source, f"{path}.dataSource")
    if ref is not None:
        errors += _data_source(ref, f"{path}.dataSourceRef")
        if namespace := ref.get("namespace"):
            at = f"{path}.dataSourceRef.namespace"
            errors += [field.invalid(at, namespace, text) for text in name_is_dns_label(namespace, False)]
    if source is None or ref is None:
        return errors
    if ref.get("namespace"):  # upstream passes a field.Path as the value, which prints as {}
        errors.append(field.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(key) != ref.get(key) for key in ("apiGroup", "kind", "name")):
        errors.append(field.invalid(path, {}, "must match dataSourceRef"))
    return errors


def _data_source(source: Object, path: str) -> list[FieldError]:
    errors = [field.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        errors.append(field.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    return errors + (dns_subdomain(group, f"{path}.apiGroup") if group else [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated claim.

    The spec is immutable, except for resources.requests and volumeAttributesClassName of a bound claim, the setting of
    volumeName, and the move of the storage class from the beta annotation into its field.
    """
    from tetrapod.core.validation.differences import spec_difference

    errors = validate(new)
    spec, old_copy = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if not old_copy.get("volumeName"):
        old_copy["volumeName"] = spec.get("volumeName")
    annotations, old_annotations = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if _class_from_annotation(old_annotations, annotations, old_copy.get("storageClassName"), spec.get("storageClassName")):
        spec.pop("storageClassName", None)
    else:
        errors += immutable(annotations.get(BETA_CLASS, ""), old_annotations.get(BETA_CLASS, ""), f"metadata.annotations.{BETA_CLASS}")
        name = spec.get("storageClassName")
        if name is not None and old_copy.get("storageClassName") is None and old_annotations.get(BETA_CLASS, name) == name:
            del spec["storageClassName"]
    if (new.get("status") or {}).get("phase") == "Bound":
        _keep_size_and_attributes(spec, old_copy)
    if _semantic(spec) != _semantic(old_copy):
        errors.append(field.forbidden("spec", f"{_ONLY}\n{spec_difference('PersistentVolumeClaimSpec', old_copy, spec)}"))
    errors += _shrinking(new_spec, old_spec, old)
    errors += immutable(new_spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")
    return errors + _attributes_class(new_spec.get("volumeAttributesClassName"), old_spec.get("volumeAttributesClassName"), old)


def _class_from_annotation(old: Object, new: Object, old_class: str | None, new_class: str | None) -> bool:
    """Return whether an update moves the storage class from the beta annotation into spec.storageClassName."""
    if BETA_CLASS not in old or old_class is not None:
        return False
    annotated_class = old[BETA_CLASS]
    return bool(new_class == annotated_class and new.get(BETA_CLASS, annotated_class) == annotated_class)


def _keep_size_and_attributes(spec: Object, before: Object) -> None:
    """Copy the storage request and volumeAttributesClassName from `before`, because a bound claim may change both."""
    requests = (spec.get("resources") or {}).get("requests")
    if requests is not None:
        merged_requests = {**requests}
        size = ((before.get("resources") or {}).get("requests") or {}).get("storage")
        merged_requests["storage"] = size
        spec["resources"] = {**spec["resources"], "requests": merged_requests}
    spec["volumeAttributesClassName"] = before.get("volumeAttributesClassName")


def _semantic(spec: Object) -> Object:
    """Return the spec in a form that compares as upstream's semantic equality does: without empty values, quantities parsed."""
    semantic = {k: v for k, v in spec.items() if (v is not None if k in _POINTERS else v not in (None, "", [], {}))}
    if resources := semantic.get("resources"):
        semantic["resources"] = {
            part: {k: quantity(v) for k, v in listed.items()} for part, listed in resources.items() if listed and isinstance(listed, dict)
        }
    return semantic


def _size(spec: Object) -> Quantity:
    return quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage"))


def _shrinking(wanted: Object, had: Object, old: Object) -> list[FieldError]:
    """Reject a smaller storage request, unless it stays above the actual capacity (status.capacity).

    That exception lets a user cancel a failed expansion.
    """
    if _size(wanted) >= _size(had):
        return []
    capacity = quantity(((old.get("status") or {}).get("capacity") or {}).get("storage"))
    if _size(wanted) > capacity:
        return []
    return [field.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _attributes_class(new: str | None, had: str | None, old: Object) -> list[FieldError]:
    """Reject the removal of volumeAttributesClassName once a class has taken effect; another class may be set."""
    if new == had or new or (old.get("status") or {}).get("currentVolumeAttributesClassName") is None:
        return []
    text = f"update to {'nil' if new is None else 'empty string'} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [field.forbidden("spec.volumeAttributesClassName", text)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a claim."""
    errors: list[FieldError] = []
    if not (new.get("spec") or {}).get("accessModes"):
        errors.append(field.required("Spec.accessModes"))
    status = new.get("status") or {}
    errors += basic_resources(status.get("capacity"), "status.capacity")
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
    return errors


def basic_resources(listed: Object | None, path: str) -> list[FieldError]:
    """Reject negative quantities in a resource list."""
    return [
        field.invalid(f"{path}[{name}]", quantity(value).value, "must be a valid resource quantity")
        for name, value in (listed or {}).items()
        if quantity(value).value < 0
    ]


def _resource_key(name: str, path: str) -> list[FieldError]:
    if errors := complaints(is_qualified_name, name, path):
        return errors
    return [field.not_supported(path, name, ["storage"])] if quantities.is_native(name) and name != "storage" else []
