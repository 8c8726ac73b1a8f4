"""Conversions of JSON scalars, as their schema describes them, to values for use in expressions.

Each function returns the value, or raises EvaluationError for a value of another type or with an invalid format.

Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go, UnstructuredToVal.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.time import parse_duration, parse_timestamp
from tetrapod.machinery.cel.values import Timestamp
from tetrapod.machinery.golang.formatting import type_name

_DAY: Final = 86_400_000_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
NULL: Final = "invalid data, got null for schema with nullable=false"
"""The error for null where the schema does not allow it."""


def double(value: Any) -> float:
    """Convert a number, also an integer, to a double."""
    if value.__class__ not in (int, float):
        raise EvaluationError(NULL if value is None else f"invalid data, expected float, got {type_name(value)}")
    return float(value)


def _of_class(python_class: type, name: str) -> Callable[[Any], Any]:
    """Return a function that returns values of a class, and raises EvaluationError for others.

    Args:
        python_class: the class.
        name: its name in Go, for errors.
    """

    def checked(value: Any) -> Any:
        if value.__class__ is not python_class:
            raise EvaluationError(NULL if value is None else f"invalid data, expected {name}, got {type_name(value)}")
        return value

    return checked


integer = _of_class(int, "int")
boolean = _of_class(bool, "bool")
string = _of_class(str, "string")
"""Return a string. Validation also accepts lists where a schema has a string with a format."""


def int_or_string(value: Any) -> Any:
    """Return an integer or a string."""
    if value.__class__ not in (int, str):
        text = "invalid data, expected XIntOrString value to be either a string or integer"
        raise EvaluationError(NULL if value is None else text)
    return value


def _duration(value: Any) -> Any:
    parsed = parse_duration(string(value))
    if parsed is None:
        from tetrapod.machinery.cel.time import parse_words

        parsed = parse_words(value)
    if parsed is None:
        raise EvaluationError(f"Invalid duration {value}")
    return parsed


def _date(value: Any) -> Any:
    string(value)
    try:
        return Timestamp((date.fromisoformat(value).toordinal() - _EPOCH) * _DAY)
    except (TypeError, ValueError):
        raise EvaluationError(f"Invalid date formatted string {value}") from None


def _date_time(value: Any) -> Any:
    parsed = parse_timestamp(string(value).upper().replace(" ", "T"))
    if parsed is None:
        raise EvaluationError(f"Invalid date-time formatted string {value}")
    return parsed


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(string(value), validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise EvaluationError(f"Invalid byte formatted string {value}") from None


FORMATS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "duration": _duration,
    "date": _date,
    "date-time": _date_time,
    "byte": _bytes,
}
"""The conversions of strings, by format."""
