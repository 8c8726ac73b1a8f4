"""Conversions between types, `type`, `dyn`, `size`, and functions of optional values.

Upstream: cel-go common/stdlib and cel/library.go.
"""

from __future__ import annotations

import re
from math import isnan
from typing import Any, Final, Never

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.operators import checked_int, checked_uint
from tetrapod.machinery.cel.library.signatures import Functions, list_of
from tetrapod.machinery.cel.time import checked_timestamp, parse_duration, parse_timestamp, text_of
from tetrapod.machinery.cel.values import (
    NONE,
    Duration,
    Fields,
    ObjectLike,
    Optional,
    Special,
    Timestamp,
    Uint,
    WrappedMap,
    size_of,
    type_of_value,
)
from tetrapod.machinery.golang.floats import go_float

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _fail(target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{target}'")


def _int_of(text: str) -> int:
    if not _INT.fullmatch(text) or len(text) > 40 or not -(1 << 63) <= int(text) < 1 << 63:
        raise _fail("int")
    return int(text)


def _uint_of(text: str) -> Uint:
    if not text.isascii() or not text.isdigit() or len(text) > 40 or int(text) >= 1 << 64:
        raise _fail("uint")
    return Uint(text)


def _float_of(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise _fail("double")
    value = float(text)
    if value in (float("inf"), float("-inf")) and "n" not in text.lower():
        raise _fail("double")
    return value


def _bool_of(text: str) -> bool:
    if text not in _BOOLS:
        raise _fail("bool")
    return _BOOLS[text]


def _duration_of(text: str) -> Duration:
    parsed = parse_duration(text)
    if parsed is None:
        raise _fail("google.protobuf.Duration")
    return parsed


def _timestamp_of(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise _fail("google.protobuf.Timestamp")
    return parsed


def _truncated(value: float) -> int:
    if isnan(value) or not -9223372036854775808 < value < 9223372036854775808:
        raise EvaluationError("integer overflow")
    return checked_int(int(value))


def _truncated_uint(value: float) -> Uint:
    if isnan(value) or not 0 <= value < 18446744073709551616:
        raise EvaluationError("unsigned integer overflow")
    return checked_uint(int(value))


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: Any) -> Any:
    return value


def is_zero(value: Any) -> bool:
    """Return whether a value is empty or the zero value of its type.

    An optional is zero if it is empty or its value is zero.
    """
    if isinstance(value, (WrappedMap, Fields)):
        return False
    if isinstance(value, (list, dict, ObjectLike)):
        return len(value) == 0
    if isinstance(value, (Duration, Timestamp)):
        return value.ns == 0
    if isinstance(value, Optional):
        return value is NONE or is_zero(value.value)
    return False if isinstance(value, Special) else not value


def _unwrapped(values: list[Any]) -> list[Any]:
    if any(not isinstance(value, Optional) for value in values):
        raise EvaluationError("value is not optional")
    return [value.value for value in values if value is not NONE]


def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _without_size(value: Fields) -> Never:
    raise EvaluationError("no such overload: size")


FUNCTIONS: Final[Functions] = {
    "type": [((object,), type_of_value)],
    "dyn": [((object,), _same)],
    "size": [
        ((str,), len),
        ((bytes,), len),
        ((list,), len),
        ((dict,), len),
        ((Fields,), _without_size),
        ((ObjectLike,), size_of),
    ],
    "bool": [((bool,), _same), ((str,), _bool_of)],
    "bytes": [((bytes,), _same), ((str,), lambda text: text.encode("utf-8", "surrogatepass"))],
    "double": [((float,), _same), ((int,), float), ((str,), _float_of), ((Uint,), float)],
    "duration": [((Duration,), _same), ((str,), _duration_of)],
    "int": [
        ((int,), _same),
        ((float,), _truncated),
        ((str,), _int_of),
        ((Uint,), lambda value: checked_int(int(value))),
        ((Timestamp,), lambda value: value.ns // 1_000_000_000),
        ((Duration,), lambda value: value.ns),
    ],
    "string": [
        ((str,), _same),
        ((bool,), lambda value: "true" if value else "false"),
        ((bytes,), _decoded),
        ((float,), go_float),
        ((int,), str),
        ((Uint,), lambda value: str(int(value))),
        ((Timestamp,), text_of),
        ((Duration,), text_of),
    ],
    "timestamp": [
        ((Timestamp,), _same),
        ((str,), _timestamp_of),
        ((int,), lambda value: checked_timestamp(value * 1_000_000_000)),
    ],
    "uint": [((Uint,), _same), ((float,), _truncated_uint), ((int,), checked_uint), ((str,), _uint_of)],
    "optional.of": [((object,), Optional)],
    "optional.none": [((), lambda: NONE)],
    "optional.ofNonZeroValue": [((object,), lambda value: NONE if is_zero(value) else Optional(value))],
    "optional.unwrap": [((list_of(Optional),), _unwrapped)],
    "unwrapOpt": [((list_of(Optional),), _unwrapped)],
    "hasValue": [((Optional,), lambda value: value is not NONE)],
    "value": [((Optional,), _value)],
    "first": [((list,), lambda values: Optional(values[0]) if values else NONE)],
    "last": [((list,), lambda values: Optional(values[-1]) if values else NONE)],
}
