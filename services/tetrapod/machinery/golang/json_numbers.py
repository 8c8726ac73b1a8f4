"""Numbers in JSON as Go's encoder writes them.

A float64 of 1.0 is `1`, and floats have no exponent from 1e-6 to 1e21.

Upstream: Go's encoding/json, floatEncoder.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import orjson

_INT64: Final = 1 << 63
_EXACT: Final = 1 << 53
_WITHOUT: Final = frozenset({int, str, bool, type(None)})
_whole_float = re.compile(rb"[0-9]\.0[,\]}]|[0-9]\.0$|[0-9]e\+1[678]").search
_ends = re.compile(rb"(?:e\+(?:1[6-9]|20)|e-6)(?:[,\]}]|$)").match
_text_or_whole = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+\.0(?![0-9e])')
_text_or_float = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9.]+e(?:\+1[6-9]|\+20|-6)(?![0-9])')


def integral(value: Any) -> Any:
    """Return a JSON value with the whole floats in it (such as 1.0) as integers.

    Lists and objects are modified in place. Floats beyond int64 stay floats.
    """
    return _integral(value) if has_whole_floats(value) else value


def has_whole_floats(value: Any) -> bool:
    """Return whether a JSON value is or contains a whole float, such as 1.0, at any depth.

    The result may be True without need, because text like `1.0]` in a string counts too.
    """
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
    """Return a whole float as an integer with the digits that Go writes.

    These are the fewest digits that identify the float, then zeros.
    """
    return int(value) if abs(value) <= _EXACT else int(Decimal(repr(value)))


def without_exponents(encoded: bytes) -> bytes:
    """Return a JSON document that orjson encoded, with floats from 1e-6 to 1e21 written without exponent, as Go does.

    Args:
        encoded: the document. Whole floats in it keep their `.0`; `as_go_writes` removes it.
    """
    return _text_or_float.sub(_in_go, encoded) if _has_exponent(encoded) else encoded


def _has_exponent(encoded: bytes) -> bool:
    """Return whether a document may contain a float between 1e-6 and 1e21 that is written with an exponent.

    The match may be within a string. Nearly every document contains none, which this check finds without running a
    regular expression over all of it.
    """
    return (b"+" in encoded and _has(encoded, b"e+")) or _has(encoded, b"e-6")


def _has(encoded: bytes, sign: bytes) -> bool:
    at = encoded.find(sign)
    while at >= 0:
        if encoded[at - 1 : at].isdigit() and _ends(encoded, at) is not None:
            return True
        at = encoded.find(sign, at + 1)
    return False


def as_go_writes(encoded: bytes) -> bytes:
    """Return a JSON document that orjson encoded, with its floats as Go writes them: 1.0 as `1`, 1e-6 as `0.000001`.

    Only floats below 1e-6 and from 1e21 on have an exponent. For stored objects `without_exponents` is sufficient,
    because their whole floats are integers already.
    """
    return (
        _text_or_float.sub(_in_go, _text_or_whole.sub(_shortened, encoded))
        if b"." in encoded or b"e" in encoded
        else encoded
    )


def _shortened(match: re.Match[bytes]) -> bytes:
    text = match[0]
    return text if text.startswith(b'"') else text[:-2]


def _in_go(match: re.Match[bytes]) -> bytes:
    text = match[0]
    return text if text.startswith(b'"') else format(Decimal(text.decode()), "f").encode()
