"""Numbers without a fraction as Go's encoder writes them: a float64 of 1.0 is `1` on its next way through JSON."""

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
    """The value with whole floats as integers; lists and objects are changed in place."""
    return _integral(value) if has_whole_floats(value) else value


def has_whole_floats(value: Any) -> bool:
    if value.__class__ in _WITHOUT:
        return False
    encoded = orjson.dumps(value)
    if b".0" in encoded or (b"+" in encoded and b"e+" in encoded):  # else the expression, which costs ten times as much, finds nothing
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
    """A whole float with the digits that Go writes of it: no more than tell it from others, then zeros."""
    return int(value) if abs(value) <= _EXACT else int(Decimal(repr(value)))
