"""OpenAPI documents as the protocol buffers of gnostic, which Go clients of old read.

The field numbers are gnostic's (openapiv2 and openapiv3, OpenAPIv*.proto). A message is described by a table: JSON name → field number and
how its value is written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import orjson

from tetrapod.machinery.protobuf.wire import varint

Value: TypeAlias = Callable[[int, Any], bytes]
"""Writes a field of a number with a value."""
Table: TypeAlias = dict[str, tuple[int, Value]]


def delimited(field: int, payload: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def text(field: int, value: Any) -> bytes:
    return delimited(field, str(value).encode()) if value != "" else b""


def flag(field: int, value: Any) -> bytes:
    return varint(field << 3) + b"\x01" if value else b""


def integer(field: int, value: Any) -> bytes:
    return varint(field << 3) + varint(int(value)) if value else b""


def double(field: int, value: Any) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value) if value else b""


def anything(field: int, value: Any) -> bytes:
    """gnostic's Any: YAML text; JSON is YAML."""
    return delimited(field, delimited(2, orjson.dumps(value) + b"\n"))


def many(one: Value) -> Value:
    return lambda field, values: b"".join(_element(one, field, value) for value in values)


def _element(one: Value, field: int, value: Any) -> bytes:
    """An element of a repeated field is written even when it is empty."""
    return one(field, value) or delimited(field, b"")


def wrapped(inner: int, value_of: Value) -> Value:
    """A message with one field (`oneof` wrappers, lists of strings)."""
    return lambda field, value: delimited(field, value_of(inner, value))


def named(value_of: Value) -> Value:
    """A map as repeated (name, value)."""

    def write(field: int, values: Any) -> bytes:
        return b"".join(delimited(field, text(1, name) + value_of(2, value)) for name, value in values.items())

    return write


def pairs(fields: tuple[int, ...], written: dict[str, bytes]) -> Iterator[bytes]:
    """The same map, sorted, whose values are field 2 as it is written and are taken out one by one; `fields`: the numbers from the
    outermost message's to that of the pairs."""
    *outer, inner = fields
    heads: dict[str, bytes] = {}
    size = 0
    for name in sorted(written):
        key = text(1, name)
        head = heads[name] = varint(inner << 3 | 2) + varint(len(key) + len(written[name])) + key
        size += len(head) + len(written[name])
    opening = b""
    for field in reversed(outer):
        opening = varint(field << 3 | 2) + varint(len(opening) + size) + opening
    yield opening
    for name, head in heads.items():
        yield head
        yield written.pop(name)


def message(table: Table | Callable[[], Table], extension: int = 0) -> Value:
    """A message; `extension` is the field of its `x-…` members. A table that is circular comes as a function."""

    def write(field: int, value: Any) -> bytes:
        return delimited(field, body(table() if callable(table) else table, extension, value))

    return write


def body(table: Table, extension: int, value: Any) -> bytes:
    return b"".join(_fields(table, extension, value))


def _fields(table: Table, extension: int, value: Any) -> Iterable[bytes]:
    for name, item in value.items():
        entry = table.get(name)
        if entry is not None:
            yield entry[1](entry[0], item)
        elif extension and name.startswith("x-"):
            yield delimited(extension, text(1, name) + anything(2, item))


def either(key: str, present: Value, absent: Value) -> Value:
    """One of two messages, told apart by a key (`$ref`)."""
    return lambda field, value: present(field, value) if key in value else absent(field, value)
