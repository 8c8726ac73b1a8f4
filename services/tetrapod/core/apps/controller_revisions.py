"""ControllerRevisions, whose data is compared as text.

Upstream keeps a runtime.RawExtension as it was sent and compares the bytes (pkg/apis/apps/validation/validation.go,
ValidateControllerRevisionUpdate). A patch re-encodes the data and may change the bytes.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.raw_json import stored_text
from tetrapod.machinery.table import Column, TableConvertor

_REVISION_DATA: Final = "data must be a valid JSON object"


def definition() -> ResourceDefinition:
    """Return the resource definition of ControllerRevisions: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate, whole_update_validator=validate_update, revalidates_generate_name="after finalizers"
    )
    return builtin("apps", "controllerrevisions", strategy, table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ControllerRevision: data is a JSON object, and revision is not negative."""
    errors = not_negative(obj.get("revision"), "revision")
    data: Any = obj.get("data")
    if data is None:
        errors.append(field.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(field.required("data", _REVISION_DATA))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ControllerRevision: data is immutable, and revision is not negative."""
    data = new.get("data")
    errors = not_negative(new.get("revision"), "revision")
    if stored_text(data) == stored_text(old.get("data")):  # the order of members counts
        return errors
    return [*errors, field.invalid("data", data, "field is immutable")]


def _row(obj: Object) -> list[Any]:
    owner = next((o for o in obj["metadata"].get("ownerReferences") or [] if o.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [name_of(obj), controller, obj.get("revision") or 0, age(obj)]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Controller"),
        Column("Revision"),
        AGE,
    ),
    _row,
)
