"""Validation of printer columns, of subresources, and of the simple JSON paths that they contain."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.field import FieldError, child, invalid, required
from tetrapod.machinery.gvk import Object

COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def validate_column(column: Object, path: str) -> list[FieldError]:
    """Return the errors of one of additionalPrinterColumns.

    It has a name, a known type, a JSONPath that begins with a dot and, optionally, a known format.

    Args:
        column: the entry of additionalPrinterColumns.
        path: the field path of the entry, for the errors.
    """
    errors = []
    kind, form, json_path = (column.get(key) or "" for key in ("type", "format", "jsonPath"))
    if not column.get("name"):
        errors.append(required(child(path, "name")))
    among = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        errors.append(required(child(path, "type"), among))
    elif kind not in COLUMN_TYPES:
        errors.append(invalid(child(path, "type"), kind, among))
    if form and form not in COLUMN_FORMATS:
        errors.append(invalid(child(path, "format"), form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not json_path:
        errors.append(required(child(path, "JSONPath")))
    else:
        errors += validate_simple_path(json_path, child(path, "JSONPath"))
    return errors


def validate_subresources(subresources: Object | None, path: str) -> list[FieldError]:
    """Return the errors of the paths in subresources.scale; `subresources` may be None.

    Args:
        subresources: the subresources of a version.
        path: their field path, for the errors.
    """
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors = _scale_path(scale, "specReplicasPath", (".spec.",), "should be a json path under .spec", path)
    errors += _scale_path(scale, "statusReplicasPath", (".status.",), "should be a json path under .status", path)
    if scale.get("labelSelectorPath"):
        text = "should be a json path under either .spec or .status"
        errors += _scale_path(scale, "labelSelectorPath", (".spec.", ".status."), text, path)
    return errors


def _scale_path(scale: Object, key: str, roots: tuple[str, ...], text: str, path: str) -> list[FieldError]:
    at, value = child(path, f"scale.{key}"), scale.get(key) or ""
    if not value:
        return [required(at)]
    if errors := validate_simple_path(value, at):
        return errors
    return [] if value.startswith(roots) else [invalid(at, value, text)]


def validate_simple_path(value: str, path: str) -> list[FieldError]:
    """Return an error unless a JSONPath begins with a dot, else [].

    Args:
        value: the JSONPath, such as ".spec.replicas".
        path: the field path of `value`, for the error.
    """
    return [] if value.startswith(".") else [invalid(path, value, "must be a simple json path starting with .")]
