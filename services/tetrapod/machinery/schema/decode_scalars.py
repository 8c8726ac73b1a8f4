"""Decoders of single values: strings, integers, numbers, booleans and base64.

Each decoder takes a JSON value and returns the value to store: the same one, a canonical one, or `ABSENT`.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.golang.json_numbers import shortest_integer
from tetrapod.machinery.schema.decode_errors import DecodeError, Mismatch
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

Walk: TypeAlias = Callable[[Any], Any]

ABSENT: Final = object()
"""The result of a decoder if the field is omitted."""

_INT64: Final = 1 << 63
_UINT64: Final = 1 << 64
_EXACT: Final = 1 << 53
_RANGES: Final = {"int32": 1 << 31, "int64": _INT64, "time.Duration": _INT64, "": _INT64}
_ZEROS: Final[dict[str, Any]] = {"string": "", "boolean": False, "integer": 0, "number": 0}


def scalar(node: SchemaNode) -> Walk:
    """Return the decoder of a scalar field, including the field's rule (`presence`) for empty and absent values."""
    check = _bytes if node.format == "byte" else _CHECKS[node.type](node)
    empty = None if node.presence == "n" else ABSENT
    if node.presence in ("*", "="):
        return lambda value: ABSENT if value is None else check(value)
    if empty is None:  # a pointer, or bytes, without `omitempty`
        return lambda value: None if value is None else check(value)
    default = node.default if node.default is not NO_DEFAULT and node.default else empty

    def walk(value: Any) -> Any:
        if value is None:
            return empty
        return check(value) or default

    return walk


def zero_of_scalar(node: SchemaNode) -> Any:
    """Return the zero value of any type that is not a struct, as JSON.

    It is None for times, raw values, lists and maps.
    """
    if node.format == "quantity":
        return "0"
    if node.int_or_string:
        return 0
    if node.format == "date-time":
        return None
    return _ZEROS.get(node.type)


def go_type(node: SchemaNode) -> str:
    """Return the Go type of a schema as the decoder's errors name it.

    Examples are `v1.PodSpec`, `[]string`, `map[string]string` and `int32`.
    """
    if node.type == "array" and node.items is not None:
        return "[]" + go_type(node.items)
    if node.type == "object" and node.additional_properties is not None:
        return "map[string]" + go_type(node.additional_properties)
    if node.definition:
        return ".".join(node.definition.split(".")[-2:])
    if node.format == "byte":
        return "[]uint8"
    return {"integer": node.format or "int", "number": "float64", "boolean": "bool"}.get(node.type, node.type)


def _string(node: SchemaNode) -> Walk:
    def check(value: Any) -> Any:
        if value.__class__ is not str:
            raise Mismatch(value, "string")
        return value

    return check


def _boolean(node: SchemaNode) -> Walk:
    def check(value: Any) -> Any:
        if value.__class__ is not bool:
            raise Mismatch(value, "bool")
        return value

    return check


def _integer(node: SchemaNode) -> Walk:
    limit = _RANGES[node.format]
    name = go_type(node)

    def check(value: Any) -> Any:
        if value.__class__ is not int or not -limit <= value < limit:
            raise Mismatch(value, name)
        return value

    return check


def _number(node: SchemaNode) -> Walk:
    def check(value: Any) -> Any:
        if value.__class__ is float:
            # 1.0 is stored as 1. Values beyond int64 stay floats, because Go's JSON encoder writes no larger integers.
            return shortest_integer(value) if value.is_integer() and abs(value) < _INT64 else value
        if value.__class__ is not int:
            raise Mismatch(value, "float64")
        if -_EXACT <= value <= _EXACT:
            return value
        shortest = shortest_integer(float(value))
        return shortest if -_INT64 <= shortest < _UINT64 else float(value)

    return check


_CHECKS: Final[dict[str, Callable[[SchemaNode], Walk]]] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
}


def _bytes(value: Any) -> Any:
    """Return the value of a `[]byte` field as canonical base64, the text that Go writes after it has decoded the value.

    The result is `value` itself if that is canonical already.

    Args:
        value: base64 text, in which line ends are ignored; or, as in Go, a list of numbers from 0 to 255, in which null
            is 0.

    Raises:
        Mismatch: the value is neither a string nor such a list.
        DecodeError: the text is not base64.
    """
    if value.__class__ is list:
        return binascii.b2a_base64(bytes(map(_byte, value)), newline=False).decode()
    if value.__class__ is not str:
        raise Mismatch(value, "[]uint8")
    data = decode_base64(value)
    canonical = binascii.b2a_base64(data, newline=False).decode()
    return value if canonical == value else canonical


def decode_base64(text: str) -> bytes:
    """Return the bytes of base64, in which line ends are ignored.

    Raises:
        DecodeError: the text is not base64.
    """
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return _base64_with_line_ends(text)


def _byte(value: Any) -> int:
    if value is None:
        return 0
    if value.__class__ is not int or not 0 <= value <= 255:
        raise Mismatch(value, "uint8")
    number: int = value
    return number


_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _base64_with_line_ends(text: str) -> bytes:
    """Return the bytes of base64 that may contain line ends.

    Raises:
        DecodeError: the text is invalid; with the byte position at which Go's decoder stops.
    """
    quantum = 0  # the number of characters in the current group of four
    for position, char in enumerate(text):
        if char in "\r\n":
            continue
        if char == "=" and quantum >= 2:
            return _base64_padded(text, position, quantum)
        if char not in _ALPHABET:
            raise _corrupt(text, position)
        quantum = (quantum + 1) % 4
    if quantum:
        raise _corrupt(text, len(text) - quantum)
    return binascii.a2b_base64(text)


def _base64_padded(text: str, position: int, quantum: int) -> bytes:
    """Return the bytes of base64 with padding.

    Args:
        text: the whole text.
        position: the index of the first `=`.
        quantum: the number of characters before it in the last group of four.

    Raises:
        DecodeError: the padding is invalid; with the byte position at which Go's decoder stops.
    """
    remaining = [(i, char) for i, char in enumerate(text[position + 1 :], position + 1) if char not in "\r\n"]
    if quantum == 2:
        if not remaining:
            raise _corrupt(text, len(text))
        if remaining[0][1] != "=":
            raise _corrupt(text, remaining[0][0] - 1)
        remaining = remaining[1:]
    if remaining:
        raise _corrupt(text, remaining[0][0])
    return binascii.a2b_base64(text)


def _corrupt(text: str, position: int) -> DecodeError:
    return DecodeError(f"illegal base64 data at input byte {len(text[:position].encode())}")
