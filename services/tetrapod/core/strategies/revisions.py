"""The strategy and the store of ControllerRevision, whose data is compared as text.

Upstream keeps a runtime.RawExtension as it was sent and compares the bytes (pkg/apis/apps/validation/validation.go,
ValidateControllerRevisionUpdate). A patch re-encodes the data and may change the bytes. The text is stored in a hidden field if it
differs from Go's encoding of the data.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.apps import validate_revision, validate_revision_update
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.shown import FilteredStore
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.verbatim import Verbatim

_TEXT: Final = "dataText"


class RevisionStrategy(KindStrategy):
    """The strategy of ControllerRevision."""

    def __init__(self) -> None:
        super().__init__(validate=validate_revision, whole_update=validate_revision_update, revalidates_generate_name=True)

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
    """Return the data's text as it was sent, or "" if it equals Go's encoding."""
    data = obj.get("data")
    return data.text if isinstance(data, Verbatim) else ""


class RevisionStore(FilteredStore):
    """A store that hides the text of the data from readers."""

    def hides(self, item: bytes) -> bool:
        return b'"dataText":' in item

    def hide(self, obj: Object) -> bool:
        return obj.pop(_TEXT, None) is not None
