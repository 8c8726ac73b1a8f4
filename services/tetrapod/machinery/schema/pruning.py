"""Pruning of custom resources: the removal of fields that the schema does not specify.

The metadata of the object and of embedded resources is handled by objectmeta.py.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery import field
from tetrapod.machinery.error_limits import record
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.sorting import sort_large

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(node: SchemaNode, obj: Any, *, root: bool = True) -> list[str]:
    """Remove fields that the schema does not specify, in place, and return their paths, sorted.

    Beyond MAX_ERRORS paths, the list has a placeholder at the end for each further one. `error_limits.recorded` removes
    and counts the placeholders.

    Args:
        node: the schema.
        obj: the custom resource.
        root: whether the object is a resource, whose apiVersion, kind and metadata are kept. If False, they are kept
            only in resources that the schema embeds.
    """
    pruned: list[str] = []
    if node.preserve_unknown:
        _skip(node, obj, "", pruned, root)
    else:
        _prune(node, obj, "", pruned, root)
    return sort_large(pruned)


def _prune(node: SchemaNode | None, value: Any, path: str, pruned: list[str], resource: bool) -> None:
    if value.__class__ is dict:
        _prune_object(node, value, path, pruned, resource)
    elif value.__class__ is list:
        items = None if node is None else node.items
        for index, item in enumerate(value):
            if item.__class__ in (dict, list):
                _descend(items, item, field.index(path, index), pruned)


def _prune_object(node: SchemaNode | None, value: dict[str, Any], path: str, pruned: list[str], resource: bool) -> None:
    unknown = []
    for key, item in value.items():
        if resource and key in META_FIELDS:
            continue
        child = None
        if node is not None:
            child = node.properties.get(key) or node.additional_properties
        if child is None:
            unknown.append(key)
        elif item.__class__ in (dict, list):
            _descend(child, item, field.child(path, key), pruned)
    for key in unknown:
        record(pruned, field.child(path, key))
        del value[key]


def _skip(node: SchemaNode, value: Any, path: str, pruned: list[str], resource: bool) -> None:
    """Prune the values of the fields that the schema specifies, in place, but keep unknown fields of the value itself.

    Args:
        node: the schema, which preserves unknown fields.
        value: the value.
        path: its field path.
        pruned: the list to which the paths of removed fields are added.
        resource: whether the value is a resource, whose apiVersion, kind and metadata are left alone.
    """
    if value.__class__ is dict:
        for key, item in value.items():
            if resource and key in META_FIELDS:
                continue
            child = node.properties.get(key) or node.additional_properties
            if child is not None:
                _descend(child, item, field.child(path, key), pruned)
    elif value.__class__ is list and node.items is not None:
        for index, item in enumerate(value):
            _descend(node.items, item, field.index(path, index), pruned)


def _descend(node: SchemaNode | None, value: Any, path: str, pruned: list[str]) -> None:
    if node is not None and node.preserve_unknown:
        _skip(node, value, path, pruned, node.embedded_resource)
    else:
        _prune(node, value, path, pruned, node is not None and node.embedded_resource)
