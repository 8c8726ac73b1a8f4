"""The definition of DeviceTaintRules, with their strategy, defaults, validation and table columns.

Upstream: pkg/registry/resource/devicetaintrule/strategy.go and pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.resource import GROUP
from tetrapod.core.resource.device_rules import ErrorLists, pool_name, taint
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import csi_driver_name, dns_label
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since
from tetrapod.machinery.timestamps import now_rfc3339

_MOST_CONDITIONS: Final = 8


def definition() -> ResourceDefinition:
    """Return the resource definition of DeviceTaintRules: versions, strategy, subresources and columns."""
    strategy = DeviceTaintRuleStrategy(
        defaults=set_defaults,
        validator=validate,
        has_status=True,
        generation=("spec",),
    )
    status = StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status, tabular=False)
    return builtin(
        GROUP,
        "devicetaintrules",
        strategy,
        versions=("v1", "v1beta2", "v1alpha3"),
        table=TABLE,
        subresources={"status": status},
    )


class DeviceTaintRuleStrategy(KindStrategy):
    """The strategy of DeviceTaintRules.

    In versions before v1, an update needs no resourceVersion and DELETE returns the object. In v1, an update needs one
    and DELETE returns a Status.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Set timeAdded of the taint to the current time if an update changes the effect but not timeAdded."""
        super().prepare_for_update(ctx, new, old)
        new_taint, old_taint = ((obj.get("spec") or {}).get("taint") or {} for obj in (new, old))
        changed = new_taint.get("effect") != old_taint.get("effect")
        if changed and new_taint.get("timeAdded") == old_taint.get("timeAdded"):
            new_taint["timeAdded"] = now_rfc3339()

    def allows_unconditional_update(self, version: str) -> bool:
        return version != "v1"

    def returns_deleted_object(self, version: str) -> bool:
        return version != "v1"


def set_defaults(obj: Object) -> None:
    """Set the default of spec.taint.timeAdded, the current time, in a DeviceTaintRule, which is modified."""
    if (taint := (obj.get("spec") or {}).get("taint")) is not None:
        set_taint_defaults(taint)


def set_taint_defaults(taint: Object) -> None:
    """Set timeAdded of a device taint to the current time if it is unset."""
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = now_rfc3339()


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated DeviceTaintRule.

    The names of driver, pool and device in the selector are valid, as far as they are set, and so is the taint.
    """
    spec, errors = obj.get("spec") or {}, ErrorLists()
    selector = spec.get("deviceSelector") or {}
    for key, check in (("driver", csi_driver_name), ("pool", pool_name), ("device", dns_label)):
        if (value := selector.get(key)) is not None:
            errors.written += check(value, f"spec.deviceSelector.{key}")
    taint(spec.get("taint") or {}, "spec.taint", errors)
    return errors.all()


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status conditions of a DeviceTaintRule, and their number. The stored object is not used."""
    listed = (new.get("status") or {}).get("conditions") or []
    errors = conditions(listed, "status.conditions")
    if len(listed) > _MOST_CONDITIONS:
        errors.append(field.too_many("status.conditions", len(listed), _MOST_CONDITIONS))
    return errors


def _row(obj: Object) -> list[Any]:
    taint = spec_of(obj).get("taint") or {}
    added = taint.get("timeAdded")
    return [
        name_of(obj),
        taint.get("key", ""),
        taint.get("value", ""),
        taint.get("effect", ""),
        since(added) if added else "",
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Key"),
        Column("Value"),
        Column("Effect"),
        Column("TimeAdded"),
        AGE,
    ),
    _row,
)
