"""Validation of the names of a definition: plural, singular, kind, list kind, short names and categories."""

from __future__ import annotations

from tetrapod.machinery.field import FieldError, child, index, invalid, required
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1035_label

_MIXED = "may have mixed case, but should otherwise match: "


def validate_required_names(names: Object, path: str) -> list[FieldError]:
    """Return an error for each required name that is empty."""
    return [required(child(path, key)) for key in ("plural", "singular", "kind", "listKind") if not names.get(key)]


def validate_names(names: Object, path: str) -> list[FieldError]:
    """Return the errors of spec.names or status.acceptedNames."""
    errors = []
    for key in ("plural", "singular"):
        value = names.get(key) or ""
        if value and (texts := is_dns1035_label(value)):
            errors.append(invalid(child(path, key), value, ",".join(texts)))
    for key in ("kind", "listKind"):
        value = names.get(key) or ""
        if value and (texts := is_dns1035_label(value.lower())):
            errors.append(invalid(child(path, key), value, _MIXED + ",".join(texts)))
    errors += _each(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.append(invalid(child(path, "listKind"), names["listKind"], "kind and listKind may not be the same"))
    return errors + _each(names, "categories", path)


def _each(names: Object, key: str, path: str) -> list[FieldError]:
    errors = []
    for i, name in enumerate(names.get(key) or ()):
        if texts := is_dns1035_label(name):
            errors.append(invalid(index(child(path, key), i), name, ",".join(texts)))
    return errors
