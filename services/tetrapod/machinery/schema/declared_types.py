"""Whether the parts of an object have the types that a schema declares.

A stored object may have others after its schema changed, and an update may leave them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.machinery.schema_node import SchemaNode

_Check = Callable[[Any], bool]
_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def has_declared_types(node: SchemaNode, value: Any) -> bool:
    """Return whether a value and all its parts have the types that their schemas declare.

    Args:
        node: the schema.
        value: the value, as decoded from JSON.
    """
    return _check(node)(value)


def _check(node: SchemaNode) -> _Check:
    """Return the check of values of a schema. It is made once and cached in the node."""
    known: _Check | None = node.compiled.get("declared-types")
    if known is None:
        known = node.compiled["declared-types"] = _made(node)
    return known


def _made(node: SchemaNode) -> _Check:
    classes = (int, str) if node.int_or_string else _SCALARS.get(node.type)
    if node.nullable:
        return _nullable(_not_null(node, classes))
    return _not_null(node, classes)


def _nullable(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _not_null(node: SchemaNode, classes: tuple[type, ...] | None) -> _Check:
    if classes is not None:
        return lambda value: value.__class__ in classes
    match node.type:
        case "object":
            return _object(node)
        case "array":
            return _array(node)
    return lambda value: True


def _object(node: SchemaNode) -> _Check:
    checks = {name: _check(child) for name, child in node.properties.items()}
    others = None if node.additional_properties is None else _check(node.additional_properties)

    def check(value: Any) -> bool:
        if value.__class__ is not dict:
            return False
        for name, member in value.items():
            check_member = checks.get(name, others)
            if check_member is not None and not check_member(member):
                return False
        return True

    return check


def _array(node: SchemaNode) -> _Check:
    items = None if node.items is None else _check(node.items)
    return lambda value: value.__class__ is list and (items is None or all(map(items, value)))
