"""ControllerRevision: its data is compared as text, so that the text is kept where it is not the one that Go writes.

Upstream keeps a runtime.RawExtension as it came (pkg/apis/apps/validation/validation.go: ValidateControllerRevisionUpdate); a patch
makes it anew, and with it another value.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.core.validation.apps import validate_revision, validate_revision_update
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.shown import HiddenStore
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.verbatim import Verbatim

_TEXT: Final = "dataText"


class RevisionStrategy(KindStrategy):
    def __init__(self) -> None:
        super().__init__(validate=validate_revision, whole_update=validate_revision_update, names_again=True)

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
    data = obj.get("data")
    return data.text if isinstance(data, Verbatim) else ""


class RevisionStore(HiddenStore):
    def hides(self, item: bytes) -> bool:
        return b'"dataText":' in item

    def hide(self, obj: Object) -> bool:
        return obj.pop(_TEXT, None) is not None
