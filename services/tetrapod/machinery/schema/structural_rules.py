"""Whether a CRD's openAPIV3Schema is structural: every field has a type, and value validations only restrict what is declared.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (validation.go, complete.go, convert.go). Errors are sorted by their text, as
upstream does since it walks maps. `crd_schema.py` puts this together with the other rules for schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.schema.patterns import BadPattern, compile_pattern

Schema: TypeAlias = Mapping[str, Any]

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_STRING: Final = "x-kubernetes-int-or-string"
_UNTYPED: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = {
    "id": "id",
    "$schema": "schema",
    "$ref": "ref",
    "additionalItems": "additionalItems",
    "patternProperties": "patternProperties",
    "definitions": "definitions",
    "dependencies": "dependencies",
}
_FORBIDDEN_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "externalDocs": "must be undefined to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _INT_STRING: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def unsupported(schema: Schema) -> str:
    """Why a schema cannot be read as a structural one at all, or ""."""
    for key, name in _UNSUPPORTED.items():
        if schema.get(key) not in (None, "", {}):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema object, but is an array"
    return next((text for child in _below(schema) if (text := unsupported(child))), "")


def _below(schema: Schema) -> Iterator[Schema]:
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
    yield from (schema.get("properties") or {}).values()
    for key in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(key) or ()


def validate(schema: Schema, path: str) -> list[FieldError]:
    """The violations, sorted."""
    return sorted([*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)], key=str)


def _invariants(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        yield field.required(field.child(path, "items"), "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, "item", field.child(path, "items"))
    for name, child in (schema.get("properties") or {}).items():
        yield from _invariants(child, "field", field.key(field.child(path, "properties"), name))
    if additional is not None:
        at = field.child(path, "additionalProperties")
        if level == "root":
            yield field.forbidden(at, "must not be used at the root")
        if isinstance(additional, dict):
            yield from _invariants(additional, "field", at)
        if schema.get(_EMBEDDED):
            yield field.forbidden(at, f"must not be used if {_EMBEDDED} is set")
    yield from _extension_errors(schema, path)
    yield from _value_errors(schema, level, path)
    yield from _type_errors(schema, kind, level, path)
    yield from _meta_errors(schema, level, path)


def _extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get(_INT_STRING):
        for key in (_PRESERVE, _EMBEDDED):
            if schema.get(key):
                yield field.invalid(field.child(path, key), True, f"must be false if {_INT_STRING} is true")


def _type_errors(schema: Schema, kind: str, level: str, path: str) -> Iterator[FieldError]:
    at = field.child(path, "type")
    if schema.get(_EMBEDDED) and kind != "object":
        text = f"must be object if {_EMBEDDED} is true"
        yield field.invalid(at, kind, text) if kind else field.required(at, text)
    elif not kind and not schema.get(_INT_STRING) and not schema.get(_PRESERVE):
        yield field.required(at, _UNTYPED[level])
    if level == "root" and kind and kind != "object":
        yield field.invalid(at, kind, "must be object at the root")


def _meta_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    """apiVersion, kind and metadata of a resource are what they are; the root's schema may restrict names only."""
    properties = schema.get("properties") or {}
    embedded = bool(schema.get(_EMBEDDED))
    below = field.child(path, "properties")
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                yield field.invalid(field.child(field.key(below, name), "type"), properties[name].get("type") or "", "must be string")
        if "metadata" in properties and properties["metadata"].get("type") != "object":
            kind = properties["metadata"].get("type") or ""
            yield field.invalid(field.child(field.key(below, "metadata"), "type"), kind, "must be object")
    if level == "root" and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield field.forbidden(field.key(below, "metadata"), text)
    if embedded and not schema.get(_PRESERVE) and not properties:
        yield field.required(below, f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")


def _restricts_names_only(metadata: Schema) -> bool:
    names = set(metadata.get("properties") or {})
    return names <= {"name", "generateName"} and not any(metadata[key] for key in metadata.keys() - {"type", "default", "properties"})


def _value_errors(schema: Schema, level: str, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    """Of the value validations of a schema, nested ones included. The pattern of int-or-string may name types."""
    if not skip_any_of and schema.get("anyOf") != _INT_OR_STRING:
        for index, nested in enumerate(schema.get("anyOf") or ()):
            yield from _nested_errors(nested, level, field.index(field.child(path, "anyOf"), index))
    for index, nested in enumerate(schema.get("allOf") or ()):
        skip = index == 0 and nested.get("anyOf") == _INT_OR_STRING
        yield from _nested_errors(nested, level, field.index(field.child(path, "allOf"), index), skip_any_of=skip)
    for index, nested in enumerate(schema.get("oneOf") or ()):
        yield from _nested_errors(nested, level, field.index(field.child(path, "oneOf"), index))
    if schema.get("not"):
        yield from _nested_errors(schema["not"], level, field.child(path, "not"))
    if pattern := schema.get("pattern"):
        try:
            compile_pattern(pattern)
        except BadPattern as error:
            yield field.invalid(field.child(path, "pattern"), pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested_errors(nested: Schema, level: str, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _nested_value_errors(nested, level, path, skip_any_of)
    if isinstance(nested.get("items"), dict):
        yield from _nested_errors(nested["items"], level, field.child(path, "items"))
    for name, child in (nested.get("properties") or {}).items():
        yield from _nested_errors(child, "field", field.key(field.child(path, "properties"), name))
    for key, text in _FORBIDDEN_NESTED.items():
        if nested.get(key) not in (None, "", False, []) or (key == "additionalProperties" and nested.get(key) is False):
            yield field.forbidden(field.child(path, key), text)
    if "metadata" in (nested.get("properties") or {}):
        yield field.forbidden(field.key(field.child(path, "properties"), "metadata"), "must not be specified in a nested context")


def _nested_value_errors(nested: Schema, level: str, path: str, skip_any_of: bool) -> Iterator[FieldError]:
    """The exception of int-or-string holds where the outer schema names it, not in nested ones by themselves."""
    if skip_any_of or nested.get("anyOf") != _INT_OR_STRING:
        yield from _value_errors(nested, level, path, skip_any_of=skip_any_of)
        return
    for index, inner in enumerate(nested["anyOf"]):
        yield from _nested_errors(inner, level, field.index(field.child(path, "anyOf"), index))
    yield from _value_errors({**nested, "anyOf": None}, level, path)


def _completeness(values: Schema, declared: Schema, declared_at: str, values_at: str) -> Iterator[FieldError]:
    """Whatever a value validation speaks of must be declared outside."""
    if values.get("not"):
        yield from _nested_completeness(values["not"], declared, declared_at, field.child(values_at, "not"))
    for key in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(values.get(key) or ()):
            yield from _nested_completeness(nested, declared, declared_at, field.index(field.child(values_at, key), index))


def _nested_completeness(nested: Schema, declared: Schema | None, declared_at: str, nested_at: str) -> Iterator[FieldError]:
    if declared is None:
        yield field.required(declared_at, f"because it is defined in {nested_at}")
        return
    yield from _completeness(nested, declared, declared_at, nested_at)
    if isinstance(nested.get("items"), dict):
        yield from _nested_completeness(
            nested["items"], declared.get("items"), field.child(declared_at, "items"), field.child(nested_at, "items")
        )
    for name, child in (nested.get("properties") or {}).items():
        at = field.key(field.child(declared_at, "properties"), name)
        inner = (declared.get("properties") or {}).get(name)
        yield from _nested_completeness(child, inner, at, field.key(field.child(nested_at, "properties"), name))
