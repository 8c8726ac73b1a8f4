"""Types whose JSON form differs from the fields of their message.

They are times, quantities, int-or-string, raw JSON, lists with a Go type of their own, and the alternatives in a CRD's
schema.

Upstream: the generated or hand-written Marshal, Unmarshal and MarshalJSON of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.protobuf.messages import APIEXTENSIONS, APIMACHINERY, META
from tetrapod.machinery.protobuf.wire import delimited, varint
from tetrapod.machinery.quantity import FORMAT_TEXT
from tetrapod.machinery.serializer import json
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.raw_json import raw_text
from tetrapod.machinery.timestamps import format_micro, format_time, parse

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GO_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)

_TIME: Final = META + "Time"
_MICRO_TIME: Final = META + "MicroTime"
TIMES: Final = (_TIME, _MICRO_TIME)
"""Messages that upstream reads by the one of Timestamp, which errors name."""
_QUANTITY: Final = APIMACHINERY + "api.resource.Quantity"
_INT_OR_STRING: Final = APIMACHINERY + "util.intstr.IntOrString"
_OR_BOOL: Final = APIEXTENSIONS + "JSONSchemaPropsOrBool"
_OR_ARRAY: Final = APIEXTENSIONS + "JSONSchemaPropsOrArray"
_OR_STRINGS: Final = APIEXTENSIONS + "JSONSchemaPropsOrStringArray"

RAW_EXTENSION: Final = APIMACHINERY + "runtime.RawExtension"
FIELDS_V1: Final = META + "FieldsV1"
RAW_JSON: Final = frozenset({FIELDS_V1, RAW_EXTENSION, APIEXTENSIONS + "JSON"})
"""Messages with a single field, whose bytes are JSON."""
_LISTS: Final = ("ExtraValue", "Verbs", "AttestationValue")
"""The last part of the names of lists with a Go type of their own, which are messages on the wire."""


# --- encoding: JSON values to the bytes of the message ----------------------------------------------------------------


def _quantity(value: Any) -> bytes:
    return delimited(b"\x0a", str(value).encode())


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
    return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"


@bounded(count=8192, size=2 << 20, largest=512)
def _time(value: str) -> bytes:
    """Return the message of a metav1.Time for its text, in whole seconds; a fraction is dropped."""
    return b"\x08" + varint(_seconds(parse(value))) + b"\x10\x00"


@bounded(count=1024, size=512 << 10, largest=512)
def _micro_time(value: str) -> bytes:
    moment = parse(value)
    return b"\x08" + varint(_seconds(moment)) + b"\x10" + varint(moment.microsecond * 1000)


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


def _raw(value: Any) -> bytes:
    return b"" if value is None else delimited(b"\x0a", orjson.dumps(value))


def _raw_extension(value: Any) -> bytes:
    """Encode a RawExtension with the text in which it was sent, or, if that is not known, with Go's."""
    if value is None:
        return b""
    return delimited(b"\x0a", raw_text(value))


def _strings(values: list[str]) -> bytes:
    return b"".join([delimited(b"\x0a", value.encode()) for value in values])


BODIES: Final[Mapping[str, Callable[[Any], bytes]]] = {
    _QUANTITY: _quantity,
    _INT_OR_STRING: _int_or_string,
    _TIME: _time,
    _MICRO_TIME: _micro_time,
    **dict.fromkeys(RAW_JSON, _raw),
    RAW_EXTENSION: _raw_extension,
}


def body_of(message: str) -> Callable[[Any], bytes] | None:
    """Return the function that encodes a value of a special type to the bytes of its message.

    The result is None for other messages.
    """
    return _strings if message.endswith(_LISTS) else BODIES.get(message)


def _schema_or_bool(value: Any) -> Object:
    return {"allows": value} if isinstance(value, bool) else {"allows": True, "schema": value}


def _schema_or_array(value: Any) -> Object:
    return {"jSONSchemas" if isinstance(value, list) else "schema": value}


def _schema_or_strings(value: Any) -> Object:
    return {"property" if isinstance(value, list) else "schema": value}


AS_MESSAGE: Final[Mapping[str, Callable[[Any], Object]]] = {
    _OR_BOOL: _schema_or_bool,
    _OR_ARRAY: _schema_or_array,
    _OR_STRINGS: _schema_or_strings,
}
"""Functions from JSON values to the fields of the message."""


# --- decoding: the fields of the message to JSON values ---------------------------------------------------------------


def _to_time(message: Object) -> str | None:
    moment = _moment(message, 0)
    return None if moment is None else format_time(moment)


def _to_micro_time(message: Object) -> str | None:
    moment = _moment(message, message.get("nanos", 0) // 1000)
    return None if moment is None else format_micro(moment)


def _moment(message: Object, micros: int) -> datetime | None:
    if not message:
        return None
    try:
        moment = _EPOCH + timedelta(seconds=message.get("seconds", 0), microseconds=micros)
    except OverflowError:
        raise DecodeError("Time.MarshalJSON: year outside of range [0,9999]") from None
    return None if moment == _GO_ZERO else moment


def _to_quantity(message: Object) -> str:
    """Return the text of a quantity.

    Raises:
        DecodeError: it begins or ends with white space, which only JSON allows. Other errors are found later.
    """
    text: str = message.get("string", "0")
    if text != text.strip():
        raise DecodeError(FORMAT_TEXT)
    return text


def _to_int_or_string(message: Object) -> int | str:
    value: int | str = message.get("strVal", "") if message.get("type") == 1 else message.get("intVal", 0)
    return value


def _to_items(message: Object) -> list[str]:
    items: list[str] = message.get("items", [])
    return items


_VALUES: Final[Mapping[str, Callable[[Object], Any]]] = {
    _TIME: _to_time,
    _MICRO_TIME: _to_micro_time,
    _QUANTITY: _to_quantity,
    _INT_OR_STRING: _to_int_or_string,
    _OR_BOOL: lambda message: message.get("schema", message.get("allows", False)),
    _OR_ARRAY: lambda message: message.get("jSONSchemas") or message.get("schema"),
    _OR_STRINGS: lambda message: message.get("property") or message.get("schema"),
    **dict.fromkeys(RAW_JSON, lambda message: message.get("Raw", message.get("raw"))),
}


def value_of(message: str) -> Callable[[Object], Any] | None:
    """Return the function that converts a decoded message of a special type to its JSON value.

    The result is None for other messages. The function raises `DecodeError` for a time that JSON cannot express.
    """
    return _to_items if message.endswith(_LISTS) else _VALUES.get(message)


def parse_json(data: bytes, depth: int) -> Any:
    """Return the JSON value in the bytes of a RawExtension, FieldsV1 or JSON. Empty bytes are null.

    Args:
        data: the bytes.
        depth: the most levels of objects and lists.

    Raises:
        DecodeError: the bytes are not JSON, or nest deeper.
    """
    if not data:
        return None
    value = json.decode(data).obj
    if data.count(b"{") + data.count(b"[") > depth and _nests_deeper(value, depth):
        raise DecodeError("exceeded max depth")
    return value


def _nests_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        children = (parent.values() if isinstance(parent, dict) else parent for parent in level)
        level = [child for some in children for child in some if isinstance(child, dict | list)]
        if not level:
            return False
    return True
