"""Decoding of request bodies to objects in JSON form.

The function that reads a message is compiled at first use. Empty values that Go writes are kept; the typed decoder
(machinery/schema/decode.py) then removes those that JSON would omit. Unknown fields are ignored. A message that occurs
twice is merged, as generated code does. Readers pass positions within one buffer, from which only values are copied.
"""

from __future__ import annotations

import math
import struct
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from tetrapod.machinery.depth import MAX_DEPTH
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.protobuf.messages import APIMACHINERY, Field, UnknownMessageError, fields, message_of
from tetrapod.machinery.protobuf.special_types import FIELDS_V1, RAW_EXTENSION, RAW_JSON, TIMES, parse_json, value_of
from tetrapod.machinery.protobuf.wire import (
    BYTES,
    END_GROUP,
    FIXED64,
    VARINT,
    end_of_input,
    read_size,
    read_varint,
    skip,
)
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.raw_json import with_text

MAGIC: Final = b"k8s\x00"
_MAX_MESSAGES: Final = MAX_DEPTH // 2
"""The deepest nesting of messages. Each message is one or two levels of JSON."""
_UNKNOWN: Final = APIMACHINERY + "runtime.Unknown"

Message: TypeAlias = Callable[[bytes, int, int, Object, int], Object]
"""Reads a message, given the data, where the message begins and ends, the object to fill and the depth. Returns the
object.
"""
Read: TypeAlias = Callable[[bytes, int, int, Object, int], int]
"""Reads a field, given the data, the position after the tag, the end of the message, the object to fill and the depth.

Returns the position after the value.
"""
Value: TypeAlias = Callable[[bytes, int, int, int], Any]
"""Reads a value, given the data, where the value begins and ends, and the depth. Returns the value."""


class MessageError(DecodeError):
    """The bytes of an object do not match the message of its kind.

    Attributes:
        kind: the kind.
    """

    def __init__(self, text: str, kind: GroupVersionKind) -> None:
        super().__init__(text)
        self.kind = kind


def decode(data: bytes, expected: GroupVersionKind) -> Object:
    r"""Return the object in a request body.

    Args:
        data: the body, with the prefix `k8s\0` and the envelope runtime.Unknown.
        expected: the kind and apiVersion to assume if the envelope does not state them.

    Returns:
        The object. For a kind without a message, it has only the kind and apiVersion of the envelope; the caller
        rejects the kind.

    Raises:
        DecodeError: the envelope is missing or broken.
        MessageError: the bytes of the object do not match its message.
    """
    if not data:
        raise DecodeError("empty data")
    if not data.startswith(MAGIC):
        raise DecodeError(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, MAGIC))}]"
        )
    if len(data) == len(MAGIC):
        raise DecodeError("empty body")
    try:
        unknown = _reader(_UNKNOWN)(data, len(MAGIC), len(data), {}, 0)
    except IndexError:
        raise end_of_input() from None
    type_meta = _type_meta(unknown.get("typeMeta", {}))
    api_version, kind = type_meta.get("apiVersion", expected.api_version), type_meta.get("kind", expected.kind)
    try:
        read = _reader(message_of(api_version, kind))
    except UnknownMessageError:
        return type_meta
    start, stop = unknown.get("raw", (0, 0))
    try:
        return {**type_meta, **read(data, start, stop, {}, 0)}
    except (IndexError, DecodeError) as error:
        text = str(end_of_input() if isinstance(error, IndexError) else error)
        raise MessageError(text, GroupVersion.parse(api_version).with_kind(kind)) from None


def _type_meta(declared: Object) -> Object:
    """Return the kind and apiVersion of an envelope, without empty ones.

    As upstream, an apiVersion with several slashes, or with a group and no version, counts as empty.
    """
    type_meta = {key: value for key, value in declared.items() if value}
    api_version = type_meta.get("apiVersion", "")
    if api_version.endswith("/") or api_version.count("/") > 1:
        del type_meta["apiVersion"]
    return type_meta


@cache
def _reader(message: str) -> Message:
    """Return the function that reads a message of a type. It is compiled once.

    The functions that read its fields are compiled when their tag first occurs.

    Args:
        message: the name of the message, such as "io.k8s.api.core.v1.PodSpec".

    Raises:
        UnknownMessageError: the message does not exist.
    """
    declared = {field.number: field for field in fields(message)}
    name = "Timestamp" if message in TIMES else message.rpartition(".")[2]
    known: dict[int, Read] = {}

    def unknown(data: bytes, position: int, end: int, key: int) -> int | Read:
        """Return the function that reads a field whose tag (`key`) occurs for the first time.

        If the message has no such field, skip it and return the position after it.

        Raises:
            DecodeError: the tag has a wrong wire type, or the field is malformed.
        """
        field = declared.get(key >> 3)
        if field is None or key & 7 == END_GROUP:
            return skip(data, position, end, key, name)
        read = (
            _packed(field)
            if key & 7 == BYTES and _wire_type(field) != BYTES and field.label == "repeated"
            else _field(field, message)
        )
        if key & 7 not in (_wire_type(field), BYTES if field.label == "repeated" else -1):
            raise DecodeError(f"proto: wrong wireType = {key & 7} for field {field.name[:1].upper()}{field.name[1:]}")
        known[key] = read
        return read

    def read_message(data: bytes, position: int, end: int, obj: Object, depth: int) -> Object:
        if depth > _MAX_MESSAGES:
            raise DecodeError("exceeded max depth")
        while position < end:
            key = data[position]
            if key < 0x80:
                position += 1
            else:
                key, position = read_varint(data, position)
            read = known.get(key)
            if read is None:
                result = unknown(data, position, end, key)
                if isinstance(result, int):
                    position = result
                    continue
                read = result
            position = read(data, position, end, obj, depth)
        if position > end:
            raise end_of_input()
        return obj

    return read_message


def _wire_type(field: Field) -> int:
    return BYTES if field.label == "map" else _WIRE_TYPES.get(field.type, BYTES)


_WIRE_TYPES: Final = {"bool": VARINT, "int32": VARINT, "int64": VARINT, "double": FIXED64}


def _field(field: Field, owner: str) -> Read:
    """Return the function that reads one occurrence of a field and stores or appends its value in the object.

    Args:
        field: the field.
        owner: the name of the message that has the field.
    """
    if field.label == "inline":
        return _inline(field)
    if field.label == "map":
        return _map(field)
    scalar = _NUMBERS.get(field.type)
    if scalar is not None:
        return _repeated_number(field.name, scalar) if field.label else _number(field.name, scalar)
    if field.label == "repeated":
        return _repeated(field.name, _value(field.type))
    if field.type in ("string", "bytes") or value_of(field.type):
        extent = field.type == "bytes" and (owner == _UNKNOWN)
        value = _raw_reader(owner) if owner in RAW_JSON else _value(field.type)
        return _single(field.name, _extent if extent else value)
    return _merged(field)


# --- fields of bytes --------------------------------------------------------------------------------------------------


def _single(name: str, value: Value) -> Read:
    def read(data: bytes, position: int, end: int, obj: Object, depth: int) -> int:
        position, stop = read_size(data, position, end)
        obj[name] = value(data, position, stop, depth)
        return stop

    return read


def _repeated(name: str, value: Value) -> Read:
    def read(data: bytes, position: int, end: int, obj: Object, depth: int) -> int:
        position, stop = read_size(data, position, end)
        item = value(data, position, stop, depth)
        items = obj.get(name)
        if items is None:
            obj[name] = [item]
        else:
            items.append(item)
        return stop

    return read


def _merged(field: Field) -> Read:
    name, type_ = field.name, field.type

    def read(data: bytes, position: int, end: int, obj: Object, depth: int) -> int:
        position, stop = read_size(data, position, end)
        inner = obj.get(name)
        if inner is None:
            inner = obj[name] = {}
        _reader(type_)(data, position, stop, inner, depth + 1)
        return stop

    return read


def _inline(field: Field) -> Read:
    """Return the function that reads an embedded struct, whose fields are stored in its owner."""
    type_ = field.type

    def read(data: bytes, position: int, end: int, obj: Object, depth: int) -> int:
        position, stop = read_size(data, position, end)
        _reader(type_)(data, position, stop, obj, depth + 1)
        return stop

    return read


def _map(field: Field) -> Read:
    """Return the function that reads one entry of a map field and adds it to the map in the object.

    A missing value becomes the empty value of its type, and a missing key "". As in generated code, the wire types of
    keys and values are not checked, and they may extend beyond their entry.
    """
    name = field.name
    read_key = _single("key", _string)
    read_value = _field(Field(2, "value", field.type, ""), "")
    missing: Value = _value(field.type)

    def read(data: bytes, position: int, end: int, obj: Object, depth: int) -> int:
        position, stop = read_size(data, position, end)
        entry: Object = {"key": ""}
        while position < stop:
            key, position = read_varint(data, position)
            if key >> 3 == 1:
                position = read_key(data, position, end, entry, depth)
            elif key >> 3 == 2:
                position = read_value(data, position, end, entry, depth)
            else:
                position = skip(data, position, stop, key, None)
        if "value" not in entry:
            entry["value"] = missing(data, stop, stop, depth)
        obj.setdefault(name, {})[entry["key"]] = entry["value"]
        return stop

    return read


def _value(type_: str) -> Value:
    if type_ == "string":
        return _string
    if type_ == "bytes":
        return _base64
    special = value_of(type_)
    if special is None:
        return lambda data, position, stop, depth: _reader(type_)(data, position, stop, {}, depth + 1)
    return lambda data, position, stop, depth: special(_reader(type_)(data, position, stop, {}, depth + 1))


def _string(data: bytes, position: int, stop: int, _: int) -> str:
    return data[position:stop].decode("utf-8", "replace")


def _base64(data: bytes, position: int, stop: int, _: int) -> str:
    return b2a_base64(data[position:stop], newline=False).decode()


def _raw_reader(owner: str) -> Value:
    return {RAW_EXTENSION: _verbatim, FIELDS_V1: _lenient}.get(owner, _json_bytes)


def _lenient(data: bytes, position: int, stop: int, depth: int) -> Any:
    """Return the value of a FieldsV1, or its text if that is not JSON.

    As upstream, only the field manager parses it. It ignores managed fields whose FieldsV1 is malformed or a string.
    """
    try:
        return _json_bytes(data, position, stop, depth)
    except DecodeError:
        return _string(data, position, stop, depth)


def _verbatim(data: bytes, position: int, stop: int, depth: int) -> Any:
    """Return the value of a RawExtension, an object that keeps its text if that is not the one of Go's encoder."""
    value = _json_bytes(data, position, stop, depth)
    return with_text(value, data[position:stop]) if isinstance(value, dict) else value


def _json_bytes(data: bytes, position: int, stop: int, depth: int) -> Any:
    return parse_json(data[position:stop], MAX_DEPTH - 2 * depth)


def _extent(_data: bytes, position: int, stop: int, _: int) -> tuple[int, int]:
    """Return `position` and `stop`, where a value begins and ends, instead of the value, which is not read.

    It has the signature of `Value`. The field `raw` of runtime.Unknown is read in this way, without copying its bytes.
    """
    return position, stop


# --- fields of numbers ------------------------------------------------------------------------------------------------

Number: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Reads a number, given the data and a position. Returns the number and the position after it."""


def _number(name: str, number: Number) -> Read:
    def read(data: bytes, position: int, _end: int, obj: Object, _depth: int) -> int:
        obj[name], position = number(data, position)
        return position

    return read


def _repeated_number(name: str, number: Number) -> Read:
    def read(data: bytes, position: int, _end: int, obj: Object, _depth: int) -> int:
        value, position = number(data, position)
        obj.setdefault(name, []).append(value)
        return position

    return read


def _packed(field: Field) -> Read:
    name, number = field.name, _NUMBERS[field.type]

    def read(data: bytes, position: int, end: int, obj: Object, _depth: int) -> int:
        position, stop = read_size(data, position, end)
        values = obj.setdefault(name, [])
        while position < stop:
            value, position = number(data, position)
            values.append(value)
        if position > stop:
            raise end_of_input()
        return stop

    return read


def _bool(data: bytes, position: int) -> tuple[bool, int]:
    value, position = read_varint(data, position)
    return value != 0, position


def _int64(data: bytes, position: int) -> tuple[int, int]:
    value, position = read_varint(data, position)
    return (value - (1 << 64) if value >> 63 else value), position


def _int32(data: bytes, position: int) -> tuple[int, int]:
    value, position = read_varint(data, position)
    value &= 0xFFFFFFFF
    return (value - (1 << 32) if value >> 31 else value), position


def _double(data: bytes, position: int) -> tuple[float, int]:
    try:
        value: float = struct.unpack_from("<d", data, position)[0]
    except struct.error:
        raise end_of_input() from None
    if not math.isfinite(value):
        raise DecodeError("json: unsupported value: " + {"nan": "NaN", "inf": "+Inf"}.get(str(value), "-Inf"))
    return value, position + 8


_NUMBERS: Final[Mapping[str, Number]] = {"bool": _bool, "int32": _int32, "int64": _int64, "double": _double}
