"""Validation of PriorityClass and RuntimeClass.

Upstream: pkg/apis/scheduling/validation and pkg/apis/node/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.resources import requirements
from tetrapod.core.podspec.scheduling import tolerations
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, complaints, immutable, one_of
from tetrapod.core.validation.quantities import container_resource_name
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.names import is_short_name

_SYSTEM: Final = "system-"
_HIGHEST: Final = 1_000_000_000
_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTION: Final = ["PreemptLowerPriority", "Never"]


def validate_priority(obj: Object) -> list[FieldError]:
    """Validate a new PriorityClass."""
    name, value = obj["metadata"].get("name") or "", obj.get("value") or 0
    errors: list[FieldError] = []
    if name.startswith(_SYSTEM):
        if detail := _no_system_class(name, value, obj.get("globalDefault") or False):
            text = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error: {detail}"
            errors.append(field.forbidden("metadata.name", text))
    elif value > _HIGHEST:
        errors.append(field.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    if (policy := obj.get("preemptionPolicy")) is not None:
        errors += one_of(policy, _PREEMPTION, "preemptionPolicy")
    return errors


def _no_system_class(name: str, value: int, default: bool) -> str:
    """Return an error text if a class with a system name is not one of the built-in system classes, or ""."""
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def validate_priority_update(new: Object, old: Object) -> list[FieldError]:
    """Reject changes of value and preemptionPolicy."""
    errors: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(field.forbidden("value", "may not be changed in an update."))
    return errors + immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def validate_runtime(obj: Object) -> list[FieldError]:
    """Validate a new RuntimeClass."""
    handler = obj.get("handler") or ""
    return _written(obj) + (complaints(is_short_name, handler, "handler") if handler else [field.required("handler")])


def _written(obj: Object) -> list[FieldError]:
    """Validate the rules that upstream writes by hand; those declared on the fields are checked by the callers."""
    overhead, scheduling = obj.get("overhead"), obj.get("scheduling")
    errors: list[FieldError] = []
    if overhead is not None:
        errors += requirements({"limits": overhead.get("podFixed") or {}}, container_resource_name, (), "overhead")
    if scheduling is not None:
        errors += validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        errors += _tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")
    return errors


def _tolerations(listed: list[Object], path: str) -> list[FieldError]:
    """Validate tolerations, which must be unique by key, operator, value and effect; tolerationSeconds is not compared."""
    errors = tolerations(listed, path)
    keys = [tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect")) for toleration in listed]
    repeated_indexes = repeated(keys)
    for i, toleration in enumerate(listed):
        if i in repeated_indexes:
            errors.append(field.duplicate(f"{path}[{i}]", internal("Toleration", toleration)))
    return errors


def validate_runtime_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated RuntimeClass, whose handler is immutable."""
    errors, handler = _written(new), new.get("handler") or ""
    if handler == (old.get("handler") or ""):
        return errors
    changed = field.invalid("handler", None, IMMUTABLE)
    if handler:
        return [*complaints(is_short_name, handler, "handler"), *errors, changed]
    return [*errors, changed, field.required("handler")]
