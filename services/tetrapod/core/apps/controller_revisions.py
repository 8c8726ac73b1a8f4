"""ControllerRevisions, whose data is compared as text.

Upstream keeps a runtime.RawExtension as it was sent and compares the bytes (pkg/apis/apps/validation/validation.go,
ValidateControllerRevisionUpdate). A patch re-encodes the data and may change the bytes. The text is stored in the field
`dataText`, which is hidden from readers, if it differs from Go's encoding of the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.filtered_store import FilteredStore
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.raw_json import Verbatim
from tetrapod.machinery.table import Column, TableConvertor

_TEXT: Final = "dataText"

_REVISION_DATA: Final = "data must be a valid JSON object"


def definition() -> ResourceDefinition:
    """Return the resource definition of ControllerRevisions: versions, strategy, subresources and columns."""
    definition = builtin("apps", "controllerrevisions", RevisionStrategy(), table=TABLE)
    return replace(definition, store=RevisionStore)


class RevisionStrategy(KindStrategy):
    """The strategy of ControllerRevision, whose data is immutable, and so is the JSON text that the client sent."""

    def __init__(self) -> None:
        super().__init__(validator=validate, whole_update_validator=validate_update, revalidates_generate_name=True)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(ctx, new, old)
        if new.get("data") == old.get("data") and _text(new) != old.get(_TEXT, ""):
            errors.append(field.invalid("data", new.get("data"), "field is immutable"))
        return errors

    def canonicalize(self, obj: Object) -> None:
        super().canonicalize(obj)
        if text := _text(obj):
            obj[_TEXT] = text


def _text(obj: Object) -> str:
    """Return the JSON text of the data in a decoded request body, or "" if it equals Go's encoding of the data.

    The decoder keeps a different text with the data (`Verbatim`). A stored object has it in `dataText`; this returns ""
    for it.
    """
    data = obj.get("data")
    return data.text if isinstance(data, Verbatim) else ""


class RevisionStore(FilteredStore):
    """A store that hides the field `dataText`, the text in which the data was sent, from readers."""

    def may_contain_hidden(self, item: bytes) -> bool:
        return b'"dataText":' in item

    def hide(self, obj: Object) -> bool:
        return obj.pop(_TEXT, None) is not None


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
    return errors if data == old.get("data") else [*errors, field.invalid("data", data, "field is immutable")]


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
