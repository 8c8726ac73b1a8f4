"""Encoders of OpenAPI documents in gnostic's protocol buffers, which older Go clients request.

Field numbers are gnostic's (openapiv2 and openapiv3, OpenAPIv*.proto). An encoder (`Value`) returns the bytes of a
field, given its number and value. A table describes a message: it maps a JSON name to a field number and an encoder.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tetrapod.generic.openapi.yaml_text import yaml_text
from tetrapod.machinery.protobuf.wire import varint

Value: TypeAlias = Callable[[int, Any], bytes]
"""Encodes a field, given its number and value. Scalars with their zero value are omitted."""
Table: TypeAlias = dict[str, tuple[int, Value]]


def delimited(field: int, payload: bytes) -> bytes:
    """Return a length-delimited field (a string, bytes or a message) with this content."""
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def text(field: int, value: Any) -> bytes:
    """Return a string field; b"" for the empty string."""
    return delimited(field, str(value).encode()) if value != "" else b""


def flag(field: int, value: Any) -> bytes:
    """Return a boolean field; b"" for False."""
    return varint(field << 3) + b"\x01" if value else b""


def integer(field: int, value: Any) -> bytes:
    """Return a field with a non-negative integer; b"" for 0."""
    return varint(field << 3) + varint(int(value)) if value else b""


def double(field: int, value: Any) -> bytes:
    """Return a field with a floating-point number; b"" for 0."""
    return varint(field << 3 | 1) + struct.pack("<d", value) if value else b""


def anything(field: int, value: Any) -> bytes:
    """Return a field with gnostic's Any message, which contains a value as YAML text."""
    return delimited(field, delimited(2, yaml_text(value).encode()))


def many(element: Value) -> Value:
    """Return the encoder of a repeated field, whose elements `element` encodes."""
    return lambda field, values: b"".join(_element(element, field, value) for value in values)


def _element(element: Value, field: int, value: Any) -> bytes:
    """Return the encoding of one element of a repeated field. Unlike a single field, an empty one is not omitted.

    Args:
        element: encodes the element as a whole field, with its tag.
        field: the number of the repeated field.
        value: the element.
    """
    return element(field, value) or delimited(field, b"")


def wrapped(inner: int, value_of: Value) -> Value:
    """Return the encoder of a message with one field, which `value_of` encodes under the field number `inner`.

    Such a message is the wrapper of a `oneof`.
    """
    return lambda field, value: delimited(field, value_of(inner, value))


def named(value_of: Value) -> Value:
    """Return the encoder of a map: a repeated message with the fields name (1) and value (2)."""

    def write(field: int, values: Any) -> bytes:
        return b"".join(delimited(field, text(1, name) + value_of(2, value)) for name, value in values.items())

    return write


def pairs(fields: tuple[int, ...], encoded: dict[str, bytes]) -> Iterator[bytes]:
    """Yield the pieces of a map, sorted by name, inside of nested messages.

    Args:
        fields: the field numbers from the outermost message to the repeated (name, value) messages.
        encoded: the encoded field 2 of each pair by name. Each is removed from the dictionary when it is yielded, to
            save memory.
    """
    *outer, inner = fields
    heads: dict[str, bytes] = {}
    size = 0
    for name in sorted(encoded):
        key = text(1, name)
        head = heads[name] = varint(inner << 3 | 2) + varint(len(key) + len(encoded[name])) + key
        size += len(head) + len(encoded[name])
    opening = b""
    for field in reversed(outer):
        opening = varint(field << 3 | 2) + varint(len(opening) + size) + opening
    yield opening
    for name, head in heads.items():
        yield head
        yield encoded.pop(name)


def message(table: Table | Callable[[], Table], extension: int = 0) -> Value:
    """Return the encoder of a message, which omits members that are not in the table.

    Args:
        table: the number and the encoder of each field, by the name of its JSON member; a function that returns them if
            the message contains itself.
        extension: the number of the field for `x-…` members; 0 omits them.
    """

    def write(field: int, value: Any) -> bytes:
        return delimited(field, body(table() if callable(table) else table, extension, value))

    return write


def body(table: Table, extension: int, value: Any) -> bytes:
    """Return the fields of a message, without the field number and length of the message itself.

    Args:
        table: the number and the encoder of each field, by the name of its JSON member.
        extension: the number of the field for `x-…` members; 0 omits them.
        value: the message as a JSON object.
    """
    return b"".join(_fields(table, extension, value))


def _fields(table: Table, extension: int, value: Any) -> Iterable[bytes]:
    for name, item in value.items():
        entry = table.get(name)
        if entry is not None:
            yield entry[1](entry[0], item)
        elif extension and name.startswith("x-"):
            yield delimited(extension, text(1, name) + anything(2, item))


def either(reference: Value, other: Value) -> Value:
    """Return an encoder that uses `reference` for values with the member `$ref`, and `other` for those without."""
    return lambda field, value: reference(field, value) if "$ref" in value else other(field, value)
