"""Protobuf bodies of built-in kinds to objects: what kubectl 1.32 and client-go's typed clients send.

`decode` takes the envelope (`k8s\\0` and a runtime.Unknown) and the message in it, by wire numbers that are data
(types/data/protobuf.messages, made by tools/generate_protobuf.py). Go writes what is no pointer even when it is empty; such values come
out as they are, and the typed decoder (schema/decode.py) drops what JSON would leave out. Follows
k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.serializer.errors import MAX_DEPTH, DecodeError
from tetrapod.machinery.timestamps import format_micro, format_time
from tetrapod.machinery.types.definitions import definition_of

MAGIC: Final = b"k8s\x00"
_APIMACHINERY: Final = "io.k8s.apimachinery.pkg."
_META: Final = _APIMACHINERY + "apis.meta.v1."
_CRD: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Wire: TypeAlias = int | memoryview
Read: TypeAlias = Callable[[Wire, int], Any]
"""A value as it came, and how deep it lies, to the value in JSON."""


class Field(NamedTuple):
    name: str
    read: Read
    label: str  # "", "repeated", "map", "inline"


def decode(data: bytes, expected: GroupVersionKind) -> Object:
    """The object in a body. It says its kind and apiVersion where the envelope does; `expected` tells them where it does not.

    Raises:
        DecodeError: no such envelope, a kind without wire numbers, or bytes that are no message.
    """
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        api_version, kind, raw = _envelope(memoryview(data)[len(MAGIC) :])
        group_version = GroupVersion.parse(api_version) if api_version else expected.group_version
        definition = definition_of(GroupVersionKind(*group_version, kind or expected.kind))
        obj = _message(definition, raw, 0)
    except KeyError:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"') from None
    except (ValueError, IndexError, struct.error, OverflowError) as error:
        raise DecodeError(f"proto: {error}") from None
    found = {"kind": kind, "apiVersion": api_version}
    return {**{key: value for key, value in found.items() if value}, **obj}


def _envelope(data: memoryview) -> tuple[str, str, memoryview]:
    """runtime.Unknown: apiVersion, kind, message. An encoding of the content is nothing that anybody uses."""
    api_version = kind = ""
    raw = memoryview(b"")
    for number, value in _fields(data):
        if number == 1 and isinstance(value, memoryview):
            for inner, text in _fields(value):
                if inner == 1:
                    api_version = _string(text, 0)
                elif inner == 2:
                    kind = _string(text, 0)
        elif number == 2 and isinstance(value, memoryview):
            raw = value
    return api_version, kind, raw


# --- the wire ----------------------------------------------------------------------------------------------------------


def _fields(data: memoryview) -> Iterator[tuple[int, Wire]]:
    """Field numbers and values: whole numbers as they are, everything else as its bytes."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        wire = key & 7
        if key >> 3 == 0:
            raise ValueError("illegal tag 0")
        if wire == _VARINT:
            number, position = _varint(data, position)
            yield key >> 3, number
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"illegal wireType {wire}")
        if size > end - position:
            raise ValueError("unexpected EOF")
        yield key >> 3, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise ValueError("integer overflow")


# --- messages ----------------------------------------------------------------------------------------------------------


def _message(definition: str, data: memoryview, depth: int) -> Object:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    known = _numbers(definition)
    obj: Object = {}
    for number, wire in _fields(data):
        field = known.get(number)
        if field is None:
            continue
        name, read, label = field
        if not label:
            obj[name] = read(wire, depth + 1)
        elif label == "repeated":
            obj.setdefault(name, []).extend(_repeated(read, wire, depth + 1))
        elif label == "map":
            key, value = _entry(read, wire, depth + 1)
            obj.setdefault(name, {})[key] = value
        else:
            obj.update(read(wire, depth + 1))
    return obj


def _repeated(read: Read, wire: Wire, depth: int) -> list[Any]:
    if isinstance(wire, memoryview) and read in _NUMBERS:  # packed
        values, position = [], 0
        while position < len(wire):
            number, position = _varint(wire, position)
            values.append(read(number, depth))
        return values
    return [read(wire, depth)]


def _entry(read: Read, wire: Wire, depth: int) -> tuple[str, Any]:
    key, value = "", memoryview(b"")
    found: Wire = value
    for number, part in _fields(_bytes(wire)):
        if number == 1:
            key = _string(part, depth)
        elif number == 2:
            found = part
    return key, read(found, depth)


@cache
def _numbers(definition: str) -> dict[int, Field]:
    """The fields of a message by number. Raises KeyError for one that is not known."""
    fields = orjson.loads(_lines()[definition.encode()])
    return {int(number): Field(name, _reader(type_), label) for number, (name, type_, label) in fields.items()}


@cache
def _lines() -> dict[bytes, bytes]:
    data = files("tetrapod.machinery.types").joinpath("data/protobuf.messages").read_bytes()
    return {name: fields for name, _, fields in (line.partition(b" ") for line in data.splitlines())}


@cache
def _reader(type_: str) -> Read:
    scalar = _SCALARS.get(type_)
    if scalar is not None:
        return scalar
    special = _list_value if type_.endswith(".ExtraValue") else _SPECIAL.get(type_)
    if special is None:
        return lambda wire, depth: _message(type_, _bytes(wire), depth)
    return lambda wire, depth: special(_message(type_, _bytes(wire), depth))


# --- scalars -----------------------------------------------------------------------------------------------------------


def _bytes(wire: Wire) -> memoryview:
    if not isinstance(wire, memoryview):
        raise ValueError("wrong wireType = 0")
    return wire


def _string(wire: Wire, _: int) -> str:
    return str(_bytes(wire), "utf-8", "replace")


def _base64(wire: Wire, _: int) -> str:
    return base64.b64encode(_bytes(wire)).decode()


def _bool(wire: Wire, _: int) -> bool:
    return _whole(wire) != 0


def _int64(wire: Wire, _: int) -> int:
    number = _whole(wire)
    return number - (1 << 64) if number >> 63 else number


def _int32(wire: Wire, _: int) -> int:
    number = _whole(wire) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _whole(wire: Wire) -> int:
    if isinstance(wire, memoryview):
        raise ValueError("wrong wireType = 2")
    return wire


def _double(wire: Wire, _: int) -> float:
    number: float = struct.unpack("<d", _bytes(wire))[0]
    return number


_SCALARS: Final[dict[str, Read]] = {
    "string": _string,
    "bytes": _base64,
    "bool": _bool,
    "int32": _int32,
    "int64": _int64,
    "double": _double,
}
_NUMBERS: Final = (_bool, _int32, _int64)


# --- messages that are something else in JSON --------------------------------------------------------------------------


def _moment(message: Object) -> datetime:
    return _EPOCH + timedelta(seconds=message.get("seconds", 0), microseconds=message.get("nanos", 0) // 1000)


def _time(message: Object) -> str | None:
    return format_time(_moment(message)) if message else None


def _micro_time(message: Object) -> str | None:
    return format_micro(_moment(message)) if message else None


def _int_or_string(message: Object) -> int | str:
    value: int | str = message.get("strVal", "") if message.get("type") == 1 else message.get("intVal", 0)
    return value


def _json(message: Object) -> Any:
    """The bytes are JSON; a runtime.RawExtension may also hold an enveloped message."""
    raw = base64.b64decode(message.get("raw") or message.get("Raw") or "")
    if raw.startswith(MAGIC):
        return decode(raw, GroupVersionKind("", "", ""))
    return orjson.loads(raw) if raw else None


def _list_value(message: Object) -> list[str]:
    found: list[str] = message.get("items", [])
    return found


_SPECIAL: Final[dict[str, Callable[[Object], Any]]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "FieldsV1": _json,
    _APIMACHINERY + "api.resource.Quantity": lambda message: message.get("string", "0"),
    _APIMACHINERY + "util.intstr.IntOrString": _int_or_string,
    _APIMACHINERY + "runtime.RawExtension": _json,
    _CRD + "JSON": _json,
    _CRD + "JSONSchemaPropsOrBool": lambda message: message.get("schema", message.get("allows", False)),
    _CRD + "JSONSchemaPropsOrArray": lambda message: message.get("schema", message.get("jSONSchemas")),
    _CRD + "JSONSchemaPropsOrStringArray": lambda message: message.get("schema", message.get("property")),
}
