"""Defaulting of custom resources, and removal of nulls that their schema forbids.

Built-in types get their defaults from decode.py. The defaults below a schema node are collected once; values of nodes
without any are not traversed.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting (algorithm.go, prune.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

Defaulter: TypeAlias = Callable[[Any], None]


def apply(node: SchemaNode, obj: Any) -> None:
    """Set, in place, the defaults of fields that are absent, or that are null although the schema forbids null.

    The fields are those of the value and of all objects within it.
    """
    walk = _defaulter(node)
    if walk is not None:
        walk(obj)


def has_defaults(node: SchemaNode) -> bool:
    """Return whether a schema or a schema below it has a default."""
    return _defaulter(node) is not None


def drop_nulls(node: SchemaNode, value: Any) -> None:
    """Remove, in place, members at any depth that are null although their schema is not nullable and has no default.

    List elements are kept.

    Upstream: prunenulls.go, PruneNonNullableNullsWithoutDefaults.
    """
    if isinstance(value, dict):
        nulls = []
        for key, item in value.items():
            child = node.properties.get(key) or node.additional_properties
            if child is None:
                continue
            if item is None:
                if not child.nullable and child.default is NO_DEFAULT:
                    nulls.append(key)
            elif item.__class__ in (dict, list):
                drop_nulls(child, item)
        for key in nulls:
            del value[key]
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            if item.__class__ in (dict, list):
                drop_nulls(node.items, item)


def may_have_nulls(node: SchemaNode) -> bool:
    """Return whether a valid value of a schema may have members that `drop_nulls` removes.

    Validation accepts null for a schema without a type. The answer is computed once and cached in the node.
    """
    known: bool | None = node.compiled.get("nulls")
    if known is None:
        below = (*node.properties.values(), node.additional_properties, node.items)
        known = node.compiled["nulls"] = (not node.type and not node.nullable) or any(
            may_have_nulls(child) for child in below if child is not None
        )
    return known


def _defaulter(node: SchemaNode) -> Defaulter | None:
    if "defaults" not in node.compiled:
        node.compiled["defaults"] = _compile(node)
    walk: Defaulter | None = node.compiled["defaults"]
    return walk


def _compile(node: SchemaNode) -> Defaulter | None:
    """Return a function that sets the defaults in a value, or None if no schema at or below the node has a default.

    The recursion ends because structural schemas are trees.
    """
    if node.items is not None:
        return _list_defaulter(node.items)
    own = [
        (name, child.default, child.nullable)
        for name, child in node.properties.items()
        if child.default is not NO_DEFAULT
    ]
    inner = [
        (name, defaulter) for name, child in node.properties.items() if (defaulter := _defaulter(child)) is not None
    ]
    additional = node.additional_properties
    walk_additional = None if additional is None else _defaulter(additional)
    if not own and not inner and walk_additional is None and (additional is None or additional.default is NO_DEFAULT):
        return None

    def walk(value: Any) -> None:
        if value.__class__ is not dict:
            return
        for name, default, nullable in own:
            if name not in value or (not nullable and value[name] is None):
                value[name] = copy(default)
        for name, walk_inner in inner:
            if name in value:
                walk_inner(value[name])
        if additional is not None:
            _default_map(additional, walk_additional, node.properties, value)

    return walk


def _default_map(
    rest: SchemaNode, walk: Defaulter | None, properties: dict[str, SchemaNode], value: dict[str, Any]
) -> None:
    for key, item in value.items():
        if key in properties:
            continue
        if item is None and not rest.nullable and rest.default is not NO_DEFAULT:
            value[key] = copy(rest.default)
        if walk is not None:
            walk(value[key])


def _list_defaulter(items: SchemaNode) -> Defaulter | None:
    walk_item = _defaulter(items)
    default = items.default
    if walk_item is None and default is NO_DEFAULT:
        return None

    def walk(value: Any) -> None:
        if value.__class__ is not list:
            return
        for index, item in enumerate(value):
            if item is None and not items.nullable and default is not NO_DEFAULT:
                value[index] = copy(default)
            if walk_item is not None:
                walk_item(value[index])

    return walk


def copy(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if value.__class__ is dict:
        return {key: copy(item) for key, item in value.items()}
    if value.__class__ is list:
        return [copy(item) for item in value]
    return value
