"""Encoding of objects in JSON form to messages.

The encoder of a field is compiled at first use. Missing fields are not written. Go's generated code writes fields that
are not pointers even if they are empty or zero, but readers decode the same object, so bytes and time are saved here.
Only Status and discovery documents are written as Go does (documents.py). Keys without a field are ignored.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.protobuf.documents import METADATA, NULLABLE, ZEROES
from tetrapod.machinery.protobuf.messages import Field, fields
from tetrapod.machinery.protobuf.special_types import AS_MESSAGE, body_of
from tetrapod.machinery.protobuf.wire import BYTES, FIXED64, VARINT, delimited, tag, varint

Encode: TypeAlias = Callable[[Any], bytes]
"""Encodes a value that is not null to its field including the tag, or to the bytes of its message."""

ITEM: Final = b"\x12"


def item(message: str, obj: Object) -> bytes:
    """Return an object encoded as a field with number 2, including its tag.

    That is both an item of a list and the `raw` of runtime.Unknown.

    Args:
        message: the name of the object's message.
        obj: the object.

    Raises:
        UnknownMessageError: the message does not exist.
    """
    return delimited(ITEM, body(message)(obj))


@cache
def body(message: str) -> Encode:
    """Return the function that encodes an object to the bytes of a message, without a tag.

    Raises:
        UnknownMessageError: the message does not exist.
    """
    if special := body_of(message):
        return special
    if message in NULLABLE:
        return _document(message)
    plain = _struct(message)
    if as_message := AS_MESSAGE.get(message):
        return lambda value: plain(as_message(value))
    return plain


def _struct(message: str) -> Encode:
    """Return a function that encodes the fields that an object has, in the object's order.

    Unknown fields are left out. A null member is left out too.

    Args:
        message: the name of the message.
    """
    declared = {field.name: field for field in fields(message) if field.label != "inline"}
    inline = [_inline(field) for field in fields(message) if field.label == "inline"]
    known: dict[str, Encode] = {}

    def encode(obj: Object) -> bytes:
        parts = []
        for key, value in obj.items():
            if value is None:
                continue
            encode_field = known.get(key)
            if encode_field is None:
                if key not in declared:
                    continue
                encode_field = known[key] = _field(declared[key])
            parts.append(encode_field(value))
        if inline:
            parts.extend([encode_inline(obj) for encode_inline in inline])
        return b"".join(parts)

    return encode


def _document(message: str) -> Encode:
    """Return a function that encodes every field in the order of their numbers, as Go does.

    Missing fields are encoded as their zero value, unless they are pointers in Go.

    Args:
        message: the name of the message.
    """
    pointers = NULLABLE.get(message) or METADATA.get(message, frozenset())
    encoders: list[tuple[str, bytes, Encode]] = []
    for field in sorted(fields(message)):
        is_metadata = not field.label and field.type in METADATA
        encode_field = _message(field.number, _document(field.type)) if is_metadata else _field(field)
        absent = b"" if field.label or field.name in pointers else _absent(field, encode_field)
        encoders.append((field.name, absent, encode_field))

    def encode(obj: Object) -> bytes:
        values = ((obj.get(name), absent, encode_field) for name, absent, encode_field in encoders)
        return b"".join([absent if value is None else encode_field(value) for value, absent, encode_field in values])

    return encode


def _absent(field: Field, encode: Encode) -> bytes:
    """Return the bytes of a field that is missing in the JSON object but is not a pointer in Go.

    Args:
        field: the field.
        encode: encodes a value of the field.

    Returns:
        The field with its tag and the zero value of its type.
    """
    if field.type in _SCALARS:
        return encode(ZEROES[field.type])
    return delimited(tag(field.number, BYTES), b"") if body_of(field.type) else encode({})


def _inline(field: Field) -> Encode:
    """Return the function that encodes an embedded struct, whose fields belong to its owner in JSON."""
    head = tag(field.number, BYTES)

    def encode(owner: Object) -> bytes:
        data = body(field.type)(owner)
        return delimited(head, data) if data else b""

    return encode


def _field(field: Field) -> Encode:
    if field.label == "map":
        return _map(field)
    encode_value = _value(field.number, field.type)
    if field.label == "repeated":
        return lambda values: b"".join([encode_value(value) for value in values])
    return encode_value


def _map(field: Field) -> Encode:
    head = tag(field.number, BYTES)
    key_of, value_of = _value(1, "string"), _value(2, field.type)
    zero = delimited(ITEM, b"")  # a zero time, which is null in JSON

    def encode(entries: Object) -> bytes:
        values = ((key_of(key), zero if value is None else value_of(value)) for key, value in entries.items())
        return b"".join([delimited(head, key + value) for key, value in values])

    return encode


def _value(number: int, type_: str) -> Encode:
    scalar = _SCALARS.get(type_)
    if scalar is not None:
        return scalar(number)
    return _message(number, body(type_))


def _message(number: int, encode: Encode) -> Encode:
    head = tag(number, BYTES)
    return lambda value: delimited(head, encode(value))


def _string(number: int) -> Encode:
    head = tag(number, BYTES)
    short = [head + varint(size) for size in range(128)]

    def encode(value: str) -> bytes:
        try:
            data = value.encode()
        except UnicodeEncodeError:  # an error message that quotes a path with invalid UTF-8
            data = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
        return short[len(data)] + data if len(data) < 128 else delimited(head, data)

    return encode


def _base64(number: int) -> Encode:
    head = tag(number, BYTES)
    return lambda value: delimited(head, a2b_base64(value))


def _whole(number: int) -> Encode:
    head = tag(number, VARINT)
    return lambda value: head + varint(value)


def _bool(number: int) -> Encode:
    head = tag(number, VARINT)
    true, false = head + b"\x01", head + b"\x00"
    return lambda value: true if value else false


def _double(number: int) -> Encode:
    head = tag(number, FIXED64)
    return lambda value: head + struct.pack("<d", value)


_SCALARS: Final[Mapping[str, Callable[[int], Encode]]] = {
    "string": _string,
    "bytes": _base64,
    "int32": _whole,
    "int64": _whole,
    "bool": _bool,
    "double": _double,
}
