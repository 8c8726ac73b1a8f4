"""Fields that a type does not have, in document order, as paths (`spec.containers[0].imagePolicy`).

Values of a wrong type are passed over: decoding tells of them. Upstream: the strict errors of sigs.k8s.io/json (built-in
types) and k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning (custom resources, see pruning.py).
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.shapes.node import SchemaNode


def find(node: SchemaNode, value: Any) -> list[str]:
    """The unknown fields of a value of a built-in type."""
    found: list[str] = []
    _walk(node, value, "", found, drop=False)
    return found


def drop(node: SchemaNode, value: Any) -> list[str]:
    """The same; they are removed."""
    found: list[str] = []
    _walk(node, value, "", found, drop=True)
    return found


def _walk(node: SchemaNode, value: Any, path: str, found: list[str], drop: bool) -> None:
    if isinstance(value, dict):
        if node.properties:
            _struct(node, value, path, found, drop)
        elif node.additional_properties is not None:
            for key, item in value.items():
                _walk(node.additional_properties, item, f"{path}.{key}", found, drop)
        elif node.items is not None and node.type != "array":  # it has an unmarshaler of its own, which is not strict
            _walk(node.items, value, path, [], drop)
        elif node.type == "object" and not node.preserve_unknown:
            _struct(node, value, path, found, drop)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            _walk(node.items, item, f"{path}[{index}]", found, drop)


def _struct(node: SchemaNode, value: dict[str, Any], path: str, found: list[str], drop: bool) -> None:
    unknown = []
    for key, item in value.items():
        child = node.properties.get(key)
        inner = f"{path}.{key}" if path else key
        if child is None:
            found.append(inner)
            unknown.append(key)
        else:
            _walk(child, item, inner, found, drop)
    if drop:
        for key in unknown:
            del value[key]
