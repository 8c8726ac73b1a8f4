"""Defaults of custom resources, and nulls that their schema does not allow.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting (algorithm.go, prune.go). Built-in types have their
defaults from decode.py. What there is to do below a node is found out once; where there is nothing, nobody walks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tetrapod.machinery.shapes.node import NO_DEFAULT, SchemaNode

Defaulter: TypeAlias = Callable[[Any], None]


def apply(node: SchemaNode, obj: Any) -> None:
    """Set the defaults of what is absent, or null where null is not allowed; in place."""
    walk = _defaulter(node)
    if walk is not None:
        walk(obj)


def has_defaults(node: SchemaNode) -> bool:
    return _defaulter(node) is not None


def drop_nulls(node: SchemaNode, value: Any) -> None:
    """Remove members that are null though their schema is not nullable (after `apply`). Elements of lists stay."""
    if isinstance(value, dict):
        nulls = []
        for key, item in value.items():
            child = node.properties.get(key) or node.additional_properties
            if child is None:
                continue
            if item is None:
                if not child.nullable:
                    nulls.append(key)
            elif item.__class__ in (dict, list):
                drop_nulls(child, item)
        for key in nulls:
            del value[key]
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            if item.__class__ in (dict, list):
                drop_nulls(node.items, item)


def _defaulter(node: SchemaNode) -> Defaulter | None:
    if "defaults" not in node.compiled:
        node.compiled["defaults"] = _compile(node)
    walk: Defaulter | None = node.compiled["defaults"]
    return walk


def _compile(node: SchemaNode) -> Defaulter | None:
    """Structural schemas are trees, so that looking below first comes to an end."""
    if node.items is not None:
        return _list_defaulter(node.items)
    own = [(name, child.default, child.nullable) for name, child in node.properties.items() if child.default is not NO_DEFAULT]
    inner = [(name, found) for name, child in node.properties.items() if (found := _defaulter(child)) is not None]
    rest = node.additional_properties
    walk_rest = None if rest is None else _defaulter(rest)
    if not own and not inner and walk_rest is None and (rest is None or rest.default is NO_DEFAULT):
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
        if rest is not None:
            _default_map(rest, walk_rest, node.properties, value)

    return walk


def _default_map(rest: SchemaNode, walk: Defaulter | None, properties: dict[str, SchemaNode], value: dict[str, Any]) -> None:
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
    """A deep copy of JSON."""
    if value.__class__ is dict:
        return {key: copy(item) for key, item in value.items()}
    if value.__class__ is list:
        return [copy(item) for item in value]
    return value
