"""Validation of custom resources against x-kubernetes-list-type: lists of type set and map must not have duplicates.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.freeing import free_members
from tetrapod.machinery.schema.value_checks import sorted_keys
from tetrapod.machinery.schema_node import SchemaNode


def validate(node: SchemaNode, value: Any, path: str = "") -> list[FieldError]:
    """Return an error for each item that occurs several times in a list of type set or map, at or below a value.

    Items of a list of type map are compared by their keys. If one is not an object, this is the only error of its list.

    Args:
        node: the schema of the value.
        value: the value.
        path: its field path.
    """
    if not _has_list_types(node):
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        rest = node.additional_properties
        if rest is not None and not _has_list_types(rest):
            rest = None
        for key, item in value.items():
            if (child := node.properties.get(key)) is not None:
                if _has_list_types(child):
                    errors += validate(child, item, field.child(path, key))
            elif rest is not None:
                errors += validate(rest, item, field.key(path, key))
    elif isinstance(value, list) and node.items is not None:
        if node.list_type == "map":
            errors += _map_errors(node, value, path)
        elif node.list_type == "set":
            errors += _set_errors(value, path)
        if _has_list_types(node.items):
            for index, item in enumerate(value):
                errors += validate(node.items, item, field.index(path, index))
    return errors


def _has_list_types(node: SchemaNode) -> bool:
    known: bool | None = node.compiled.get("listtypes")
    if known is None:
        below = [*node.properties.values(), *(n for n in (node.items, node.additional_properties) if n is not None)]
        known = node.compiled["listtypes"] = node.list_type in ("map", "set") or any(
            _has_list_types(child) for child in below
        )
    return known


def _set_errors(values: list[Any], path: str) -> list[FieldError]:
    return _duplicates(values, path)


def _map_errors(node: SchemaNode, values: list[Any], path: str) -> list[FieldError]:
    """Return the errors of a list of type map: items with equal keys, or the first item that is not an object.

    Args:
        node: the schema of the list, which has the names of the keys.
        values: the items; a null counts as an item without keys.
        path: the field path of the list.
    """
    for index, item in enumerate(values):
        if item is not None and not isinstance(item, dict):
            return [field.invalid(field.index(path, index), item, "must be an object for an array of list-type map")]
    keys = (
        {name: item[name] for name in node.list_map_keys if name in item} for item in (value or {} for value in values)
    )
    return _duplicates(keys, path)


def _duplicates(values: Iterable[Any], path: str) -> list[FieldError]:
    """Return one error for each repeated value, at its second occurrence.

    Args:
        values: the elements of a list.
        path: the field path of the list.
    """
    seen: dict[str, int] = {}
    errors = []
    for index, value in enumerate(values):
        # A text, because orjson's bytes are malloc's: free() merged 300,000 of them in one step of 90 ms. The JSON of
        # other values than strings has no quote at its beginning.
        key = f'"{value}' if value.__class__ is str else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            errors.append(field.duplicate(field.index(path, index), sorted_keys(value)))
    free_members(seen)
    return errors
