"""Validation of x-kubernetes-list-type, x-kubernetes-list-map-keys and x-kubernetes-map-type in a CRD's schema."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.field import FieldError, child, forbidden, invalid, key, not_supported, required
from tetrapod.machinery.gvk import Object

_LIST: Final = "x-kubernetes-list-type"
_MAP: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_DEFAULT_NEEDED: Final = (
    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
)
_NOT_NULLABLE: Final = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
_ATOMIC: Final = "must be atomic as item of a list with x-kubernetes-list-type=set"
_NESTED_SET: Final = {"array": (_LIST, (None, "atomic")), "object": (_MAP, ("atomic",))}


def list_type_errors(schema: Object, path: str, *, atomic_sets: bool, keyed_lists: bool) -> list[FieldError]:
    """Return the errors of the list and map types of one schema, without those below it.

    Args:
        schema: the schema.
        path: its field path.
        atomic_sets: whether items of sets must be atomic.
        keyed_lists: whether keys of lists of type map must be required or have a default, and items of sets and lists
            of type map must not be nullable.
    """
    errors: list[FieldError] = []
    kind, list_type, map_type = schema.get("type") or "", schema.get(_LIST), schema.get(_MAP)
    keys: list[str] = schema.get(_KEYS) or []
    items = schema["items"] if isinstance(schema.get("items"), dict) else None
    if map_type is not None and kind != "object":
        errors.append(_wrong_type(kind, path, f"must be object if {_MAP} is specified"))
    if map_type is not None and map_type not in ("atomic", "granular"):
        errors.append(not_supported(child(path, _MAP), map_type, ("atomic", "granular"), typed=False))
    if list_type is not None and kind != "array":
        errors.append(_wrong_type(kind, path, f"must be array if {_LIST} is specified"))
    elif atomic_sets and list_type == "set" and items is not None:
        errors += set_item_errors(items, child(path, "items"))
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        errors.append(not_supported(child(path, _LIST), list_type, ("atomic", "set", "map"), typed=False))
    if keys and list_type != "map":
        at, text = child(path, _LIST), f"must be map if {_KEYS} is non-empty"
        errors.append(required(at, text) if list_type is None else invalid(at, list_type, text))
    if list_type == "map":
        errors += _map_list_errors(schema, items, keys, path)
    if keyed_lists and items is not None and list_type in ("set", "map"):
        errors += keyed_list_errors(items, keys if list_type == "map" else [], list_type, child(path, "items"))
    return errors


def _wrong_type(kind: str, path: str, text: str) -> FieldError:
    return invalid(child(path, "type"), kind, text) if kind else required(child(path, "type"), text)


def set_item_errors(items: Object, path: str) -> list[FieldError]:
    """Return an error if the items of a set are lists or maps that are not atomic, else [].

    Args:
        items: the schema of the items.
        path: its field path.
    """
    name, allowed = _NESTED_SET.get(items.get("type") or "", ("", ()))
    if not name or items.get(name) in allowed:
        return []
    # Upstream quotes the list type in both cases.
    return [invalid(child(path, name), items.get(_LIST), _ATOMIC)]


def _map_list_errors(schema: Object, items: Object | None, keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not keys:
        errors.append(required(child(path, _KEYS), f"must not be empty if {_LIST} is map"))
    if schema.get("items") is None:
        errors.append(required(child(path, "items"), f"must have a schema if {_LIST} is map"))
    elif items is None:
        errors.append(
            invalid(child(path, "items"), schema["items"], f"must only have a single schema if {_LIST} is map")
        )
    elif items.get("type") != "object":
        at, text = child(path, "items", "type"), f"must be object if parent array's {_LIST} is map"
        errors.append(invalid(at, items.get("type") or "", text))
    else:
        errors += _key_errors(items.get("properties") or {}, keys, path)
    return errors


def _key_errors(properties: dict[str, Any], keys: list[str], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for name in keys:
        if name not in properties:
            errors.append(invalid(child(path, _KEYS), keys, "entries must all be names of item properties"))
        elif properties[name].get("type") in ("array", "object"):
            at = child(key(child(path, "items", "properties"), name), "type")
            # Upstream quotes the type of the items, which is object.
            errors.append(invalid(at, "object", f"must be a scalar type if parent array's {_LIST} is map"))
        if name in seen:
            errors.append(invalid(child(path, _KEYS), keys, "must not contain duplicate entries"))
        seen.add(name)
    return errors


def keyed_list_errors(items: Object, keys: list[str], list_type: str, path: str) -> list[FieldError]:
    """Return the errors of the item schema of a list of type map or set.

    An item or a key must not be nullable, and a key must be required or have a default.

    Args:
        items: the schema of the items.
        keys: the keys; [] for a set.
        list_type: the list type, "map" or "set".
        path: the field path of `items`.
    """
    errors = []
    if items.get("nullable"):
        errors.append(forbidden(child(path, "nullable"), f"cannot be nullable when {_LIST} is {list_type}"))
    properties, required_names = items.get("properties") or {}, items.get("required") or ()
    for name in keys:
        prop = properties.get(name)
        if prop is None:
            continue
        at = key(child(path, "properties"), name)
        if name not in required_names and prop.get("default") is None:
            errors.append(required(child(at, "default"), _DEFAULT_NEEDED))
        if prop.get("nullable"):
            errors.append(forbidden(child(at, "nullable"), _NOT_NULLABLE))
    return errors
