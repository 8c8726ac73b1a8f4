"""Conversion of whole floats to integers, because Go's encoder writes a float64 of 1.0 as `1`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import orjson

_INT64: Final = 1 << 63
_EXACT: Final = 1 << 53
_WITHOUT: Final = frozenset({int, str, bool, type(None)})
_whole_float = re.compile(rb"[0-9]\.0[,\]}]|[0-9]\.0$|[0-9]e\+1[678]").search


def integral(value: Any) -> Any:
    """Return the value with whole floats as integers. Lists and objects are modified in place."""
    return _integral(value) if has_whole_floats(value) else value


def has_whole_floats(value: Any) -> bool:
    """Return whether the value contains whole floats."""
    if value.__class__ in _WITHOUT:
        return False
    encoded = orjson.dumps(value)
    # The regular expression costs ten times as much as these searches, and cannot match without them.
    if b".0" in encoded or (b"+" in encoded and b"e+" in encoded):
        return _whole_float(encoded) is not None
    return False


def _integral(value: Any) -> Any:
    if isinstance(value, dict):
        for key, member in value.items():
            value[key] = _integral(member)
    elif isinstance(value, list):
        value[:] = [_integral(item) for item in value]
    elif isinstance(value, float) and value.is_integer() and abs(value) < _INT64:
        return shortest_integer(value)
    return value


def shortest_integer(value: float) -> int:
    """Return a whole float as an integer with the digits that Go writes: the fewest that identify the float, then zeros."""
    return int(value) if abs(value) <= _EXACT else int(Decimal(repr(value)))
