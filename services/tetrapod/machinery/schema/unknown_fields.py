"""Detection of fields that a built-in type does not have.

The fields are returned as paths (`spec.containers[0].imagePolicy`) in document order, in a list for
`error_limits.recorded`: beyond MAX_ERRORS paths it has placeholders. Values of a wrong type are ignored here, because
decoding reports them.

Upstream: the strict errors of sigs.k8s.io/json. For custom resources see pruning.py.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery import field
from tetrapod.machinery.error_limits import record
from tetrapod.machinery.schema_node import SchemaNode


def find(node: SchemaNode, value: Any, *, keys: bool = True) -> list[str]:
    """Return the paths of the unknown fields in a value of a built-in type, in document order.

    `keys` is whether the paths have the keys of maps. Beyond MAX_ERRORS paths, the list has placeholders, which
    `error_limits.recorded` removes and counts.
    """
    paths: list[str] = []
    _walk(node, value, "", paths, drop=False, keys=keys)
    return paths


def drop(node: SchemaNode, value: Any) -> list[str]:
    """Remove the unknown fields of a value of a built-in type in place, and return their paths in document order.

    Beyond MAX_ERRORS paths, the list has placeholders, which `error_limits.recorded` removes and counts.
    """
    paths: list[str] = []
    _walk(node, value, "", paths, drop=True)
    return paths


def _walk(node: SchemaNode, value: Any, path: str, paths: list[str], *, drop: bool, keys: bool = True) -> None:
    if isinstance(value, dict):
        if node.properties:
            _struct(node, value, path, paths, drop=drop, keys=keys)
        elif node.additional_properties is not None:
            for key, item in value.items():
                inner = field.child(path, key) if keys else path
                _walk(node.additional_properties, item, inner, paths, drop=drop, keys=keys)
        elif node.items is not None and node.type != "array":  # the type has its own unmarshaler, which is not strict
            _walk(node.items, value, path, [], drop=drop, keys=keys)
        elif node.type == "object" and not node.preserve_unknown:
            _struct(node, value, path, paths, drop=drop, keys=keys)
    elif isinstance(value, list) and node.items is not None:
        if node.type != "array":
            paths = []  # as above
        for index, item in enumerate(value):
            _walk(node.items, item, field.index(path, index), paths, drop=drop, keys=keys)


def _struct(
    node: SchemaNode, value: dict[str, Any], path: str, paths: list[str], *, drop: bool, keys: bool = True
) -> None:
    unknown = []
    for key, item in value.items():
        child = node.properties.get(key)
        inner = field.child(path, key)
        if child is None:
            record(paths, inner)
            unknown.append(key)
        else:
            _walk(child, item, inner, paths, drop=drop, keys=keys)
    if drop:
        for key in unknown:
            del value[key]
