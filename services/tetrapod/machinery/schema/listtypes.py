"""x-kubernetes-list-type: no element of a set, and no key of a list map, twice.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go.
"""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.schema.node import NO_DEFAULT, SchemaNode


def validate(node: SchemaNode, value: Any, path: str = "") -> list[FieldError]:
    """Check the invariants at and below a node."""
    if not _has_list_types(node):
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if key in node.properties:
                errors += validate(node.properties[key], item, field.child(path, key))
            elif node.additional_properties is not None:
                errors += validate(node.additional_properties, item, field.key(path, key))
    elif isinstance(value, list) and node.items is not None:
        if node.list_type == "map":
            errors += _map_errors(node, value, path)
        elif node.list_type == "set":
            errors += _set_errors(value, path)
        for index, item in enumerate(value):
            errors += validate(node.items, item, field.index(path, index))
    return errors


def _has_list_types(node: SchemaNode) -> bool:
    known: bool | None = node.compiled.get("listtypes")
    if known is None:
        below = [*node.properties.values(), *(n for n in (node.items, node.additional_properties) if n is not None)]
        known = node.compiled["listtypes"] = node.list_type in ("map", "set") or any(_has_list_types(child) for child in below)
    return known


def _set_errors(values: list[Any], path: str) -> list[FieldError]:
    return _duplicates([(item, item) for item in values], path)


def _map_errors(node: SchemaNode, values: list[Any], path: str) -> list[FieldError]:
    assert node.items is not None
    defaults = {key: child.default for key, child in node.items.properties.items() if child.default is not NO_DEFAULT}
    errors = []
    keyed: list[tuple[Any, Any] | None] = []
    for index, item in enumerate(values):
        if not isinstance(item, dict):
            errors.append(field.invalid(field.index(path, index), item, "must be an object for an array of list-type map"))
            keyed.append(None)
            continue
        key = {name: item[name] if name in item else defaults.get(name) for name in node.list_map_keys}
        shown = {name: item[name] for name in node.list_map_keys if name in item}
        keyed.append((key, shown))
    return errors or _duplicates([entry for entry in keyed if entry is not None], path)


def _duplicates(entries: list[tuple[Any, Any]], path: str) -> list[FieldError]:
    """Each value that occurs again is told once, at its first repetition."""
    seen: dict[bytes, int] = {}
    errors = []
    for index, (identity, shown) in enumerate(entries):
        key = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            errors.append(field.duplicate(field.index(path, index), _sorted(shown)))
    return errors


def _sorted(value: Any) -> Any:
    """With its keys in order, as Go prints maps."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)) if isinstance(value, dict) else value
