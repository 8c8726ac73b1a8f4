"""The definition of PriorityClasses, with their store, defaults, validation and table columns.

Upstream: pkg/registry/scheduling/priorityclass and pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import immutable, one_of
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.deletecollection import Verbs, delete_collection
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import forbidden
from tetrapod.machinery.table import Column, TableConvertor

_SYSTEM: Final = "system-"
_HIGHEST: Final = 1_000_000_000
_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTION: Final = ["PreemptLowerPriority", "Never"]

TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Value", "integer"),
        Column("Global-Default", "boolean"),
        AGE,
        Column("PreemptionPolicy"),
    ),
    lambda obj: [
        name_of(obj),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        age(obj),
        obj.get("preemptionPolicy", ""),
    ],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of PriorityClasses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        validator=validate,
        whole_update_validator=validate_update,
        generation=("value",),
    )
    return replace(builtin("scheduling.k8s.io", "priorityclasses", strategy, table=TABLE), store=PriorityClassStore)


class PriorityClassStore(Store):
    """A store that rejects the deletion of a single system priority class.

    Upstream: pkg/registry/scheduling/priorityclass/storage/storage.go, REST.Delete.
    """

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        if name in _SYSTEM_CLASSES:
            raise forbidden(self.resource, name, "this is a system priority class and cannot be deleted")
        return await super().delete(ctx, name, options, validate)

    async def delete_collection(
        self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None
    ) -> ListPage:
        """Delete a collection, with the system priority classes in it: as upstream, only DELETE of one is rejected.

        Raises:
            StatusError: the first rejection; objects deleted before remain deleted.
        """
        return await delete_collection(cast(Verbs, super()), ctx, options, query, validate)


def set_defaults(obj: Object) -> None:
    """Set the default of preemptionPolicy (PreemptLowerPriority) of a PriorityClass, which is modified."""
    if obj.get("preemptionPolicy") is None:
        obj["preemptionPolicy"] = "PreemptLowerPriority"


def validate(obj: Object) -> list[FieldError]:
    """Validate a new PriorityClass.

    A name with the prefix `system-` is that of a system class with its value. Other values are at most 1000000000.
    preemptionPolicy, if it is set, is known.
    """
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
    """Return an error text for a reserved name that is not that of a system PriorityClass with that value, else "".

    Args:
        name: the name of the PriorityClass, which begins with `system-`.
        value: its value, which must be that of the system class with this name.
        default: its globalDefault, which must be false.
    """
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject changes of value and preemptionPolicy; other fields are not validated."""
    errors: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(field.forbidden("value", "may not be changed in an update."))
    return errors + immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", typed=True)
