"""Validation of selectableFields: at most eight paths, each to a scalar field of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.machinery.field import FieldError, child, duplicate, index, invalid, required, too_many
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.fieldpath import PathError, resolve

MOST: Final = 8
_SCALARS: Final = ("string", "boolean", "integer")
_WRONG_TYPE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def validate_selectable_fields(fields: Sequence[Object], schema: Object, path: str) -> list[FieldError]:
    """Return the errors of the selectableFields of a version.

    Each names, without repetition, a field of type string, boolean or integer outside metadata.

    Args:
        fields: the entries, each with a jsonPath.
        schema: the version's openAPIV3Schema.
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, selectable in enumerate(fields):
        at, json_path = child(index(path, i), "jsonPath"), selectable.get("jsonPath") or ""
        if not json_path:
            errors.append(required(at))
            continue
        try:
            normal, field_schema = resolve(json_path, schema, arrays=False)
        except PathError as error:
            errors.append(invalid(at, json_path, f"is an invalid path: {error}"))
            continue
        if normal.split(".", 1)[0] == "metadata":
            errors.append(invalid(at, json_path, "must not point to fields in metadata"))
        if field_schema is None or field_schema.get("type") not in _SCALARS:
            errors.append(invalid(at, json_path, _WRONG_TYPE))
        if normal in seen:
            errors.append(duplicate(at, json_path))
        seen.add(normal)
    if len(seen) > MOST:
        errors.append(too_many(path, len(seen), MOST))
    return errors
