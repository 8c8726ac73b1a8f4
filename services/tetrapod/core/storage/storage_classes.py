"""The definition of StorageClasses, with their defaults, validation, warnings and table columns.

Upstream: pkg/registry/storage/storageclass/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.label_warnings import deprecated_label
from tetrapod.core.validation.names import IMMUTABLE, fixed, known, qualified_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text, new_value
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_MOST_PARAMETERS: Final = 512
_PARAMETERS_SIZE: Final = 256 * 1024
_RECLAIM: Final = frozenset({"Delete", "Retain"})
_BINDING: Final = frozenset({"Immediate", "WaitForFirstConsumer"})


_FORM: Final = HandWritten(
    "provisioner",
    "parameters",
    "reclaimPolicy",
    "volumeBindingMode",
    "allowedTopologies",
    "parameters#",
    "provisioner#",
    "reclaimPolicy#",
    "volumeBindingMode#",
    texts={
        f"FieldValueInvalid {name}": Text(former=IMMUTABLE, value=new_value)
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    },
)


def definition() -> ResourceDefinition:
    """Return the resource definition of StorageClasses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        validator=validate,
        update_validator=validate_update,
        revalidates_generate_name="before finalizers",
        warnings=warnings,
        return_deleted_object=True,
    )
    return builtin("storage.k8s.io", "storageclasses", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Set the defaults of reclaimPolicy (Delete) and volumeBindingMode (Immediate) of a StorageClass in place."""
    if obj.get("reclaimPolicy") is None:
        obj["reclaimPolicy"] = "Delete"
    if obj.get("volumeBindingMode") is None:
        obj["volumeBindingMode"] = "Immediate"


def provisioner(name: str, path: str) -> list[FieldError]:
    """Validate the name of a provisioner or driver: a qualified name in any case.

    Args:
        path: the field path of the name, for the errors.
    """
    if not name:
        return [field.required(path)]
    return qualified_name(name.lower(), path)


def parameters(listed: dict[str, str], path: str, *, needed: bool = False) -> list[FieldError]:
    """Validate the parameters of a class: at most 512, and 256 KiB in total.

    Args:
        listed: the parameters.
        path: their field path, for the errors.
        needed: whether at least one is required.
    """
    if len(listed) > _MOST_PARAMETERS:
        return [field.too_long(path, _MOST_PARAMETERS)]
    errors = [field.invalid(path, key, "field can not be empty.") for key in listed if not key]
    if sum(len(key.encode()) + len(value.encode()) for key, value in listed.items()) > _PARAMETERS_SIZE:
        errors.append(field.too_long(path, _PARAMETERS_SIZE))
    return (
        [*errors, field.required(path, "must contain at least one key/value pair")] if needed and not listed else errors
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated StorageClass.

    provisioner and volumeBindingMode are required, the policies are known, and parameters and allowedTopologies are
    valid.
    """
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
            errors += [
                field.duplicate(f"{at}.values[{k}]", value) for k, value in enumerate(values) if value in values[:k]
            ]
            errors += qualified_name(key, f"{at}.key")
            if key in values_by_key:
                errors.append(field.duplicate(f"{at}.key", key))
            values_by_key[key] = set(values)
        # upstream also compares with unset elements, which equal an empty term
        if values_by_key in seen or not values_by_key:
            errors.append(field.duplicate(path, ""))
        seen.append(values_by_key)
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject changes of provisioner, parameters, reclaimPolicy and volumeBindingMode.

    `validate` checks the other rules of an update.
    """
    frozen = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
    return [error for key in frozen for error in fixed(new.get(key), old.get(key), key)]


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning for each deprecated label in the allowed topologies. The stored object is not used."""
    warnings = []
    for i, term in enumerate(obj.get("allowedTopologies") or ()):
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            if text := deprecated_label(expression.get("key") or ""):
                warnings.append(f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {text}")
    return warnings


def _row(obj: Object) -> list[Any]:
    return [
        name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj),
    ]


def _storage_classes(classes: Sequence[Object]) -> Callable[[Object], list[Any]]:
    """Return a function that formats a row of a list of classes, marking the default class.

    The default is the most recently created class with the annotation; of several created in the same second, the first
    by name.

    Args:
        classes: all classes in the list.
    """
    candidates = [
        (obj["metadata"].get("creationTimestamp") or "", name_of(obj)) for obj in classes if _says_default(obj)
    ]
    latest = max((time for time, _ in candidates), default="")
    default = min((name for time, name in candidates if time == latest), default=None)

    def row(obj: Object) -> list[Any]:
        name, *others = _row(obj)
        return [f"{name} (default)" if name == default else name, *others]

    return row


def _says_default(obj: Object) -> bool:
    """Return whether an annotation marks the class as default."""
    annotations = obj["metadata"].get("annotations") or {}
    return any(
        annotations.get(f"storageclass.{word}kubernetes.io/is-default-class") == "true" for word in ("", "beta.")
    )


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Provisioner"),
        Column("ReclaimPolicy"),
        Column("VolumeBindingMode"),
        Column("AllowVolumeExpansion"),
        AGE,
    ),
    _row,
    of_list=_storage_classes,
)
