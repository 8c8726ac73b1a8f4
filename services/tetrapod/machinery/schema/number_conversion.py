"""Conversion of numbers to the types of their fields, for objects that upstream builds from maps by reflection.

That is the case for the result of a strategic merge patch and for applied objects. Reflection converts numbers as Go
does: a whole float becomes an integer, and an integer that is too large for its field keeps its low bits. Types with
their own decoder (quantities, int-or-strings) are written as JSON first.

Upstream: k8s.io/apimachinery/pkg/runtime/converter.go, fromUnstructured.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tetrapod.machinery.golang.json_numbers import shortest_integer
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads
from tetrapod.machinery.schema_node import SchemaNode

_INT64: Final = 1 << 63
_NO_EXPONENT: Final = 1e21
"""Go's encoder writes smaller floats with all their digits, without an exponent."""
_BITS: Final = {"int32": 32, "int64": 64, "": 64}
_SEARCHED: Final = 64 << 10
"""Bytes that are searched for such numbers before other threads can run."""
_LONGEST: Final = 64
"""Bytes in which a number is recognized; orjson writes no longer ones."""
_unusual = re.compile(rb"[:\[,]-?(?:\d{10,}|[0-9.]+(?:\.0[,\]}]|e))").search


def as_filled(obj: Any, node: SchemaNode) -> Object:
    """Return a copy of an object with its numbers converted to the types of their fields.

    In integer fields, an integer that is too large keeps only the low bits of its type, and a whole float becomes an
    integer. Numbers with a fraction and numbers of other fields are kept, except whole floats in quantities and
    int-or-strings.

    Args:
        obj: the object, which is not modified.
        node: the schema of its kind.
    """
    encoded = orjson.dumps(obj)
    copied: Object = loads(encoded)
    return _filled(copied, node) if _has_unusual_numbers(encoded) else copied


def _has_unusual_numbers(encoded: bytes) -> bool:
    return any(_unusual(encoded, start, start + _SEARCHED + _LONGEST) for start in range(0, len(encoded), _SEARCHED))


def _filled(value: Any, node: SchemaNode | None) -> Any:
    if node is None:
        return value
    if isinstance(value, dict):
        for key, member in value.items():
            value[key] = _filled(member, node.properties.get(key) or node.additional_properties)
    elif isinstance(value, list):
        value[:] = [_filled(item, node.items) for item in value]
    elif value.__class__ in (int, float):
        return _number(value, node)
    return value


def _number(value: int | float, node: SchemaNode) -> int | float:
    if isinstance(value, float) and not value.is_integer():
        return value
    if node.type == "integer":
        number = int(value) if abs(value) < _INT64 else -_INT64  # amd64 converts floats beyond int64 to its minimum
        bits = _BITS[node.format]
        return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    if (node.int_or_string or node.format == "quantity") and abs(value) < _NO_EXPONENT:
        return shortest_integer(value)
    return value
