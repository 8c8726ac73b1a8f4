"""Validation of StorageClass and VolumeAttributesClass.

Upstream: pkg/apis/storage/validation/validation.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import fixed, known, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_MOST_PARAMETERS: Final = 512
_PARAMETERS_SIZE: Final = 256 * 1024
_RECLAIM: Final = frozenset({"Delete", "Retain"})
_BINDING: Final = frozenset({"Immediate", "WaitForFirstConsumer"})


def provisioner(name: str, path: str) -> list[FieldError]:
    """Validate the name of a provisioner or driver."""
    if not name:
        return [field.required(path)]
    return qualified_name(name.lower(), path)


def parameters(listed: dict[str, str], path: str, *, needed: bool = False) -> list[FieldError]:
    """Validate the parameters of a class: at most 512, and 256 KiB in total. With `needed`, at least one is required."""
    if len(listed) > _MOST_PARAMETERS:
        return [field.too_long(path, _MOST_PARAMETERS)]
    errors = [field.invalid(path, key, "field can not be empty.") for key in listed if not key]
    if sum(len(key.encode()) + len(value.encode()) for key, value in listed.items()) > _PARAMETERS_SIZE:
        errors.append(field.too_long(path, _PARAMETERS_SIZE))
    return [*errors, field.required(path, "must contain at least one key/value pair")] if needed and not listed else errors


def validate(obj: Object) -> list[FieldError]:
    """Validate a StorageClass."""
    name = obj.get("provisioner") or ""
    errors = provisioner(name, "provisioner") if name else []
    errors += parameters(obj.get("parameters") or {}, "parameters")
    if policy := obj.get("reclaimPolicy"):
        errors += known(policy, _RECLAIM, "reclaimPolicy")
    mode = obj.get("volumeBindingMode")
    errors += [field.required("volumeBindingMode")] if mode is None else known(mode, _BINDING, "volumeBindingMode")
    errors += _topologies(obj.get("allowedTopologies") or [])
    return errors if name else [*errors, field.required("provisioner")]


def _topologies(terms: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[dict[str, set[str]]] = []
    for i, term in enumerate(terms):
        path = f"allowedTopologies[{i}].matchLabelExpressions"
        values_by_key: dict[str, set[str]] = {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values, at = expression.get("key") or "", expression.get("values") or [], f"{path}[{j}]"
            if not values:
                errors.append(field.required(f"{at}.values"))
            errors += [field.duplicate(f"{at}.values[{k}]", value) for k, value in enumerate(values) if value in values[:k]]
            errors += qualified_name(key, f"{at}.key")
            if key in values_by_key:
                errors.append(field.duplicate(f"{at}.key", key))
            values_by_key[key] = set(values)
        if values_by_key in seen or not values_by_key:  # upstream also compares with unset elements, which equal an empty term
            errors.append(field.duplicate(path, ""))
        seen.append(values_by_key)
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject changes of the immutable fields of a StorageClass."""
    frozen = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    return [error for key in frozen for error in fixed(new.get(key), old.get(key), key)]


def validate_attributes(obj: Object) -> list[FieldError]:
    """Validate a VolumeAttributesClass."""
    errors = provisioner(obj.get("driverName") or "", "driverName")
    return errors + parameters(obj.get("parameters") or {}, "parameters", needed=True)


def validate_attributes_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated VolumeAttributesClass, whose driver and parameters are immutable."""
    changed = [key for key in ("driverName", "parameters") if (new.get(key) or None) != (old.get(key) or None)]
    return [field.forbidden(key, f"updates to {key} are forbidden.") for key in changed] + validate_attributes(new)
