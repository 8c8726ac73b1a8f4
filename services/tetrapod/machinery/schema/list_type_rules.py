"""What x-kubernetes-list-type, -list-map-keys and -map-type ask of the schema that they stand in.

Upstream: ValidateCustomResourceDefinitionOpenAPISchema and validateMapListKeysMapSet of
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.schema.structural_rules import Schema

_LIST: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP: Final = "x-kubernetes-map-type"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_IN_SET: Final = f"must be atomic as item of a list with {_LIST}=set"


def list_type_errors(schema: Schema, path: str, *, atomic_sets: bool, map_keys: bool) -> list[FieldError]:
    """Errors of this one schema. `atomic_sets`, `map_keys`: rules that an old CRD may break already."""
    errors = list(_type_errors(schema, path, atomic_sets))
    errors += _key_errors(schema, path)
    if map_keys:
        errors += _item_errors(schema, path)
    return errors


def _type_errors(schema: Schema, path: str, atomic_sets: bool) -> Iterator[FieldError]:
    kind, map_type, list_type = schema.get("type") or "", schema.get(_MAP), schema.get(_LIST)
    if schema.get(_PRESERVE) is False:
        yield field.invalid(field.child(path, _PRESERVE), False, "must be true or undefined")
    if map_type is not None:
        if kind != "object":
            yield _wrong_type(path, kind, f"must be object if {_MAP} is specified")
        if map_type not in ("atomic", "granular"):
            yield _not_supported(field.child(path, _MAP), map_type, ("atomic", "granular"))
    if list_type is None:
        return
    items = schema.get("items")
    if kind != "array":
        yield _wrong_type(path, kind, f"must be array if {_LIST} is specified")
    elif atomic_sets and list_type == "set" and isinstance(items, dict):
        if items.get("type") == "array" and items.get(_LIST) not in (None, "atomic"):
            yield field.invalid(field.child(path, "items", _LIST), items[_LIST], _IN_SET)
        if items.get("type") == "object" and items.get(_MAP) != "atomic":
            yield field.invalid(field.child(path, "items", _MAP), items.get(_LIST), _IN_SET)
    if list_type not in ("atomic", "set", "map"):
        yield _not_supported(field.child(path, _LIST), list_type, ("atomic", "set", "map"))


def _key_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    keys, list_type, items = schema.get(_KEYS) or [], schema.get(_LIST), schema.get("items")
    if keys and list_type != "map":
        at, text = field.child(path, _LIST), f"must be map if {_KEYS} is non-empty"
        yield field.required(at, text) if list_type is None else field.invalid(at, list_type, text)
    if list_type != "map":
        return
    if not keys:
        yield field.required(field.child(path, _KEYS), f"must not be empty if {_LIST} is map")
    if items is None:
        yield field.required(field.child(path, "items"), f"must have a schema if {_LIST} is map")
    elif not isinstance(items, dict):
        yield field.invalid(field.child(path, "items"), items, f"must only have a single schema if {_LIST} is map")
    elif items.get("type") != "object":
        at = field.child(path, "items", "type")
        yield field.invalid(at, items.get("type") or "", f"must be object if parent array's {_LIST} is map")
    else:
        yield from _keys_of_items(list(keys), items, path)


def _keys_of_items(keys: list[str], items: Schema, path: str) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    at = field.child(path, _KEYS)
    for position, key in enumerate(keys):
        if key not in properties:
            yield field.invalid(at, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            of_key = field.child(field.key(field.child(path, "items", "properties"), key), "type")
            yield field.invalid(of_key, items["type"], f"must be a scalar type if parent array's {_LIST} is map")
        if key in keys[:position]:
            yield field.invalid(at, keys, "must not contain duplicate entries")


def _item_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    items, list_type = schema.get("items"), schema.get(_LIST)
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield field.forbidden(field.child(path, "items", "nullable"), f"cannot be nullable when {_LIST} is {list_type}")
    if list_type == "set":
        return
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for key in schema.get(_KEYS) or ():
        if key not in properties:
            continue
        at = field.key(field.child(path, "items", "properties"), key)
        if key not in required and properties[key].get("default") is None:
            text = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield field.required(field.child(at, "default"), text)
        if properties[key].get("nullable"):
            yield field.forbidden(field.child(at, "nullable"), f"this property is in {_KEYS}, so it cannot be nullable")


def _wrong_type(path: str, kind: str, text: str) -> FieldError:
    at = field.child(path, "type")
    return field.invalid(at, kind, text) if kind else field.required(at, text)


def _not_supported(path: str, value: str, supported: tuple[str, ...]) -> FieldError:
    return FieldError("FieldValueNotSupported", path, f"supported values: {', '.join(go_quote(v) for v in supported)}", value)
