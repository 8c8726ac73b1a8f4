"""Validation that a schema is structural, as pruning, defaulting and server-side apply require.

Upstream: apiextensions-apiserver/pkg/apiserver/schema (validation.go, complete.go, convert.go).
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.field import FieldError, child, forbidden, index, invalid, key, required
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.long_work import check_time

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "ref"),
    ("additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
)
_UNSUPPORTED_NAMES: Final = frozenset(name for name, _ in _UNSUPPORTED)
_NESTED_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_DEFINED_COUNTS: Final = frozenset(
    {"additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"}
)
_METADATA: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT: Final = "x-kubernetes-int-or-string"


def unsupported(schema: Object) -> str:
    """Return the reason why a schema cannot be converted to a structural one, or "" if it can.

    Upstream reports only the first such reason, in place of errors of the structure.
    """
    if not _UNSUPPORTED_NAMES.isdisjoint(schema):
        for name, shown in _UNSUPPORTED:
            value = schema.get(name)
            if value is not None and (value or name in ("additionalItems", "dependencies")):
                return f"OpenAPIV3Schema '{shown}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list) and schema["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for below in _below(schema):
        if text := unsupported(below):
            return text
    return ""


def _below(schema: Object) -> list[Object]:
    children = [
        below for name in ("items", "additionalProperties", "not") if isinstance(below := schema.get(name), dict)
    ]
    children += (schema.get("properties") or {}).values()
    for name in ("allOf", "anyOf", "oneOf"):
        children += schema.get(name) or ()
    return children


def validate_structural(schema: Object, path: str) -> list[FieldError]:
    """Return the errors of a schema that make it not structural, sorted by their text; [] if it is structural.

    Args:
        schema: the root of an openAPIV3Schema.
        path: its field path.
    """
    errors = _invariants(schema, ROOT, path) + _completeness(schema, schema, path, path)
    return sorted(errors, key=str)


def is_structural(schema: Object) -> bool:
    """Return whether a schema, the root of an openAPIV3Schema, is structural."""
    return not unsupported(schema) and not validate_structural(schema, "")


def _invariants(s: Object, level: str, path: str) -> list[FieldError]:
    """Return the errors of a schema and of those below it about types, extensions and value validations.

    Args:
        s: the schema.
        level: ROOT for the root schema, ITEM for that of list items, FIELD for that of a property.
        path: its field path.
    """
    errors: list[FieldError] = []
    kind, items, properties, additional = (
        s.get("type") or "",
        s.get("items"),
        s.get("properties") or {},
        s.get("additionalProperties"),
    )
    if kind == "array" and items is None:
        errors.append(required(child(path, "items"), "must be specified"))
    if isinstance(items, dict):
        errors += _invariants(items, ITEM, child(path, "items"))
    for name, prop in properties.items():
        errors += _invariants(prop, FIELD, key(child(path, "properties"), name))
    if additional is not None:
        if level is ROOT:
            errors.append(forbidden(child(path, "additionalProperties"), "must not be used at the root"))
        if isinstance(additional, dict):
            errors += _invariants(additional, FIELD, child(path, "additionalProperties"))
    errors += _extensions(s, path)
    errors += _values(s, path, skip_any=s.get("anyOf") == _INT_OR_STRING, skip_all=_is_all_of_pattern(s))
    return errors + _types(s, kind, level, path) + _meta_fields(s, level, path)


def _is_all_of_pattern(s: Object) -> bool:
    """Return whether the first allOf of a schema contains the anyOf of an int-or-string."""
    all_of = s.get("allOf") or []
    return bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING


def _extensions(s: Object, path: str) -> list[FieldError]:
    text = "must be false if x-kubernetes-int-or-string is true"
    return [invalid(child(path, name), True, text) for name in (_PRESERVE, _EMBEDDED) if s.get(_INT) and s.get(name)]


def _types(s: Object, kind: str, level: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    embedded = s.get(_EMBEDDED)
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(child(path, "type"), kind, text) if kind else required(child(path, "type"), text))
    elif not kind and not s.get(_INT) and not s.get(_PRESERVE):
        errors.append(required(child(path, "type"), f"must not be empty {level}"))
    if embedded and s.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(child(path, "additionalProperties"), text))
    if level is ROOT and kind and kind != "object":
        errors.append(invalid(child(path, "type"), kind, "must be object at the root"))
    return errors


def _meta_fields(s: Object, level: str, path: str) -> list[FieldError]:
    """Return the errors of apiVersion, kind and metadata in the schema of a resource.

    It checks the root, and schemas of embedded resources; others have no errors.

    Args:
        s: the schema.
        level: ROOT for the root schema; otherwise ITEM or FIELD.
        path: the field path of the schema.
    """
    errors: list[FieldError] = []
    properties = s.get("properties") or {}
    resource = level is ROOT or s.get(_EMBEDDED)
    at = child(path, "properties")
    if resource:
        named = [(name, properties[name].get("type") or "") for name in ("kind", "apiVersion") if name in properties]
        errors += [
            invalid(child(key(at, name), "type"), kind, "must be string") for name, kind in named if kind != "string"
        ]
    metadata = properties.get("metadata")
    if metadata is not None:
        if resource and metadata.get("type") != "object":
            errors.append(invalid(child(key(at, "metadata"), "type"), metadata.get("type") or "", "must be object"))
        if level is ROOT and _restricts_more_than_names(metadata):
            errors.append(forbidden(key(at, "metadata"), _METADATA))
    if s.get(_EMBEDDED) and not s.get(_PRESERVE) and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(at, text))
    return errors


def _restricts_more_than_names(metadata: Object) -> bool:
    """Return whether the schema of metadata restricts fields other than name and generateName."""
    for name, value in metadata.items():
        if name in ("type", "default") or value in (None, False, "", [], {}):
            continue
        if name == "properties" and value.keys() <= {"name", "generateName"}:
            continue
        return True
    return False


def _values(s: Object, path: str, *, skip_any: bool = False, skip_all: bool = False) -> list[FieldError]:
    """Return the errors of the value validations of a schema: allOf, anyOf, oneOf, not and pattern.

    Args:
        s: the schema.
        path: its field path.
        skip_any: whether anyOf is that of an int-or-string and is not checked.
        skip_all: whether the first allOf contains the anyOf of an int-or-string, which is not checked.

    Raises:
        TakesTooLong: this runs on the event loop, and its deadline is over after the pattern was compiled.
    """
    errors: list[FieldError] = []
    if not skip_any:
        for i, nested in enumerate(s.get("anyOf") or ()):
            errors += _nested(nested, index(child(path, "anyOf"), i))
    for i, nested in enumerate(s.get("allOf") or ()):
        errors += _nested(nested, index(child(path, "allOf"), i), skip_any=skip_all and i == 0)
    for i, nested in enumerate(s.get("oneOf") or ()):
        errors += _nested(nested, index(child(path, "oneOf"), i))
    if s.get("not") is not None:
        errors += _nested(s["not"], child(path, "not"))
    if pattern := s.get("pattern"):
        try:
            compile_pattern(pattern)
            check_time()
        except BadPattern as error:
            errors.append(
                invalid(child(path, "pattern"), pattern, f"must be a valid regular expression, but isn't: {error}")
            )
    return errors


def _nested(s: Object, path: str, *, skip_any: bool = False) -> list[FieldError]:
    """Return the errors of a schema within allOf, anyOf, oneOf or not, which may only restrict values.

    Args:
        s: the schema.
        path: its field path.
        skip_any: whether its anyOf is that of an int-or-string and is not checked.
    """
    errors = _values(s, path, skip_any=skip_any)
    if isinstance(s.get("items"), dict):
        errors += _nested(s["items"], child(path, "items"))
    properties = s.get("properties") or {}
    for name, prop in properties.items():
        errors += _nested(prop, key(child(path, "properties"), name))
    for name, text in _NESTED_FORBIDDEN:
        value = s.get(name)
        if value if name not in _DEFINED_COUNTS else value is not None and value is not False:
            errors.append(forbidden(child(path, name), text))
    if "metadata" in properties:
        errors.append(
            forbidden(key(child(path, "properties"), "metadata"), "must not be specified in a nested context")
        )
    return errors


def _completeness(v: Object, s: Object | None, s_path: str, v_path: str) -> list[FieldError]:
    """Return an error for each field or item that a value validation restricts but the structure does not specify.

    Args:
        v: the schema whose allOf, anyOf, oneOf and not are checked.
        s: the structural schema of the same value, outside of `allOf`, `anyOf`, `oneOf` and `not`; None is an error.
        s_path: the field path of `s`.
        v_path: the field path of `v`.
    """
    if s is None:
        return [required(s_path, f"because it is defined in {v_path}")]
    errors: list[FieldError] = []
    if v.get("not") is not None:
        errors += _nested_completeness(v["not"], s, s_path, child(v_path, "not"))
    for name in ("allOf", "anyOf", "oneOf"):
        for i, nested in enumerate(v.get(name) or ()):
            errors += _nested_completeness(nested, s, s_path, index(child(v_path, name), i))
    return errors


def _nested_completeness(v: Object, s: Object | None, s_path: str, v_path: str) -> list[FieldError]:
    if s is None:
        return [required(s_path, f"because it is defined in {v_path}")]
    errors = _completeness(v, s, s_path, v_path)
    if isinstance(v.get("items"), dict):
        items = s.get("items")
        errors += _nested_completeness(v["items"], items, child(s_path, "items"), child(v_path, "items"))
    properties = s.get("properties") or {}
    for name, prop in (v.get("properties") or {}).items():
        at, v_at = key(child(s_path, "properties"), name), key(child(v_path, "properties"), name)
        errors += _nested_completeness(prop, properties.get(name), at, v_at)
    return errors
