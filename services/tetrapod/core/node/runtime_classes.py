"""The definition of RuntimeClasses, with their validation, warnings and table columns.

Upstream: pkg/registry/node/runtimeclass/strategy.go and pkg/apis/node/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.label_warnings import deprecated_label
from tetrapod.core.podspec.resources import requirements
from tetrapod.core.podspec.scheduling import tolerations
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, errors_from
from tetrapod.core.validation.quantities import container_resource_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text, new_value
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.names import is_dns1123_label, is_short_name
from tetrapod.machinery.table import Column, TableConvertor

TABLE: Final = TableConvertor(
    (NAME, Column("Handler"), AGE),
    lambda obj: [name_of(obj), obj.get("handler", ""), age(obj)],
)


_FORM: Final = HandWritten(
    "handler",
    "overhead",
    "scheduling",
    "handler#",
    texts={"FieldValueInvalid handler": Text(former=IMMUTABLE, value=new_value)},
)


def definition() -> ResourceDefinition:
    """Return the resource definition of RuntimeClasses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name="after finalizers",
        warnings=warnings,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        metadata_rules="plain",
    )
    return builtin("node.k8s.io", "runtimeclasses", strategy, table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new RuntimeClass: handler is a DNS label and required; `_written` has the other rules."""
    handler = obj.get("handler") or ""
    return _written(obj) + (errors_from(is_short_name, handler, "handler") if handler else [field.required("handler")])


def _written(obj: Object) -> list[FieldError]:
    """Validate overhead and scheduling, for which upstream has hand-written rules.

    Overhead has the quantities of container resources. The node selector consists of labels, and tolerations are valid
    and unique.
    """
    overhead, scheduling = obj.get("overhead"), obj.get("scheduling")
    errors: list[FieldError] = []
    if overhead is not None:
        errors += requirements({"limits": overhead.get("podFixed") or {}}, container_resource_name, (), "overhead")
    if scheduling is not None:
        errors += validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        errors += _tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")
    return errors


def _tolerations(listed: list[Object], path: str) -> list[FieldError]:
    """Validate tolerations by the rules for pods (`tolerations`).

    They must also be unique by key, operator, value and effect; tolerationSeconds is not compared.

    Args:
        path: the field path of the list, for the errors.
    """
    errors = tolerations(listed, path)
    keys = [
        tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect")) for toleration in listed
    ]
    repeated_indexes = repeated(keys)
    for i, toleration in enumerate(listed):
        if i in repeated_indexes:
            errors.append(field.duplicate(f"{path}[{i}]", internal("Toleration", toleration)))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated RuntimeClass as a new one; its handler is immutable, and validated only if it changes."""
    errors, handler = _written(new), new.get("handler") or ""
    if handler == (old.get("handler") or ""):
        return errors
    changed = field.invalid("handler", None, IMMUTABLE)
    if handler:
        return [*errors_from(is_dns1123_label, handler, "handler"), *errors, changed]
    return [*errors, changed, field.required("handler")]


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning for each deprecated label in the node selector. The stored object is not used."""
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {text}" for text in map(deprecated_label, selector) if text]
