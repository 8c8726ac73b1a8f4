"""Decoders of the types with marshalers of their own: times, quantities, int-or-string, raw JSON, the forms of a CRD's schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.schema.decode_errors import DecodeError, Mismatch
from tetrapod.machinery.schema.decode_scalars import Walk
from tetrapod.machinery.schema.node import SchemaNode

_SECONDS: Final = re.compile(r"(?!0001)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")
"""The canonical form, of which nothing need be checked any more."""
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


def special(node: SchemaNode, field_walk: Callable[[SchemaNode, SchemaNode], Walk]) -> Walk | None:
    """The decoder of a definition with a marshaler of its own, else None."""
    name = node.definition.rpartition(".")[2]
    if name in _WALKS:
        return _WALKS[name]
    if name.startswith("JSONSchemaPropsOr"):
        return _schema_or(name, node, field_walk)
    return None


def _time(value: Any) -> Any:
    if value is None or (value.__class__ is str and _SECONDS.fullmatch(value)):
        return value
    moment = _parse(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def _micro_time(value: Any) -> Any:
    if value is None:
        return None
    moment = _parse(value, fraction=6)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _parse(value: Any, fraction: int = 0) -> datetime | None:
    """A time in UTC; None for Go's zero time."""
    if value.__class__ is not str:
        raise Mismatch(value, "string")
    match = _RFC3339.fullmatch(value)
    if match is None or len(match[7] or "") < fraction:
        raise _unreadable(value, fraction)
    try:
        moment = datetime(*(int(match[i]) for i in range(1, 7)), int((match[7] or "").ljust(6, "0")[:6]), tzinfo=UTC)  # type: ignore[arg-type, misc]
        if match[8] != "Z":
            offset = timedelta(hours=int(match[8][1:3]), minutes=int(match[8][4:]))
            moment = moment - offset if match[8][0] == "+" else moment + offset
    except (ValueError, OverflowError):
        raise _unreadable(value, fraction, out_of_range=True) from None
    return None if moment == _GO_ZERO else moment


_GO_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAYOUTS: Final = {0: "2006-01-02T15:04:05Z07:00", 6: "2006-01-02T15:04:05.000000Z07:00"}
_PARTS: Final = (
    (r"[0-9]{4}", "2006"), (r"-", "-"), (r"[0-9]{2}", "01"), (r"-", "-"), (r"[0-9]{2}", "02"), (r"T", "T"), (r"[0-9]{2}", "15"),
    (r":", ":"), (r"[0-9]{2}", "04"), (r":", ":"), (r"[0-9]{2}", "05"),
)  # fmt: skip


def _unreadable(value: str, fraction: int, out_of_range: bool = False) -> DecodeError:
    """As time.ParseError says it: which part of the layout the rest of the text does not fit."""
    quoted = go_quote(value)
    if out_of_range:
        return DecodeError(f"parsing time {quoted}: day out of range")
    rest, wanted = value, ".000000" if fraction else "Z07:00"
    for pattern, part in _PARTS:
        match = re.match(pattern, rest)
        if match is None:
            wanted = part
            break
        rest = rest[match.end() :]
    return DecodeError(f"parsing time {quoted} as {go_quote(_LAYOUTS[fraction])}: cannot parse {go_quote(rest)} as {go_quote(wanted)}")


def _quantity(value: Any) -> Any:
    return _canonical(value, canonical_quantity)


def resource_amount(value: Any) -> Any:
    """A quantity in a core ResourceList, where SetDefaults_ResourceList rounds up to thousandths."""
    return _canonical(value, _in_thousandths)


def _canonical(value: Any, form: Callable[[str], str]) -> Any:
    if value.__class__ is str:
        canonical = form(value)
        return value if canonical == value else canonical
    if value.__class__ in (int, float):
        return form(str(value))
    if value is None:
        return "0"
    raise DecodeError(_BAD_QUANTITY)


_BAD_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Raises DecodeError with upstream's text."""
    try:
        return str(Quantity.parse(text.strip()))
    except ValueError as error:
        raise DecodeError(str(error)) from None


@lru_cache(maxsize=4096)
def _in_thousandths(text: str) -> str:
    canonical = canonical_quantity(text)
    return str(Quantity.parse(canonical).round_up(-3)) if canonical[-1] in "nu" or "e-" in canonical.lower() else canonical


def _int_or_string(value: Any) -> Any:
    if value.__class__ is str:
        return value
    if value is None:
        return 0
    if value.__class__ is float and value.is_integer():
        value = int(value)
    if value.__class__ is not int or not -(1 << 31) <= value < 1 << 31:
        raise Mismatch(value, "int32")
    return value


def _anything(value: Any) -> Any:
    return value


_WALKS: Final[dict[str, Walk]] = {
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "RawExtension": _anything,
    "FieldsV1": _anything,
    "JSON": _anything,
}


def _schema_or(name: str, node: SchemaNode, field_walk: Callable[[SchemaNode, SchemaNode], Walk]) -> Walk:
    """JSONSchemaProps, or a boolean, a list of such, or a list of strings, by the name of the type."""
    assert node.items is not None
    schema = node.items

    def walk(value: Any) -> Any:
        if value.__class__ is dict:
            return field_walk(schema, node)(value)
        if value.__class__ is list and name.endswith("Array"):
            if name.endswith("StringArray"):
                for item in value:
                    if item.__class__ is not str:
                        raise Mismatch(item, "string")
                return value
            return [field_walk(schema, node)(item) for item in value]
        if value.__class__ is bool and name.endswith("Bool"):
            return value
        raise DecodeError("boolean or JSON schema expected" if name.endswith("Bool") else "array or JSON schema expected")

    return walk
