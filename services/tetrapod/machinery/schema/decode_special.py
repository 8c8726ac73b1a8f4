"""Decoders of types with their own JSON marshalers.

These are quantities, int-or-string, raw JSON, durations and the union types of CRD schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.durations import parse_nanoseconds
from tetrapod.machinery.golang.json_numbers import as_go_writes
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.schema.decode_errors import EndingError, Mismatch
from tetrapod.machinery.schema.decode_scalars import ABSENT, Walk
from tetrapod.machinery.schema.decode_times import micro_time, time
from tetrapod.machinery.schema_node import SchemaNode


def special(node: SchemaNode, field_walk: Callable[[SchemaNode, SchemaNode], Walk]) -> Walk | None:
    """Return the decoder of a definition that has its own JSON unmarshaler in Go, or None for other definitions.

    Args:
        node: the schema of the definition.
        field_walk: returns the decoder of a field, called with the schema of the field and that of the struct which
            contains it. Union types call it for the schemas in them.
    """
    name = node.definition.rpartition(".")[2]
    if name == "Duration":
        return _duration if node.presence == "*" else nonzero_duration
    if name in _WALKS:
        return _WALKS[name]
    if name.startswith("JSONSchemaPropsOr"):
        return _schema_or(name, node, field_walk)
    return None


def _quantity(value: Any) -> Any:
    return _canonical(value, canonical_quantity)


def resource_amount(value: Any) -> Any:
    """Return the canonical form of a quantity in a ResourceList of the core group.

    SetDefaults_ResourceList rounds such quantities up to thousandths.

    Raises:
        EndingError: the value is not a quantity; the message is upstream's.
    """
    return _canonical(value, _in_thousandths)


def _canonical(value: Any, form: Callable[[str], str]) -> Any:
    if value.__class__ is str:
        canonical = form(value)
        return value if canonical == value else canonical
    if value.__class__ is int:
        return form(str(value))
    if value.__class__ is float:
        return form(as_go_writes(orjson.dumps(value)).decode())
    if value is None:
        return "0"
    raise EndingError(_BAD_QUANTITY)


_BAD_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@bounded(count=8192, size=2 << 20, largest=512)
def canonical_quantity(text: str) -> str:
    """Return the canonical form of a quantity.

    Raises:
        EndingError: the text is not a quantity; the message is upstream's.
    """
    try:
        return str(Quantity.parse(text.strip()))
    except ValueError as error:
        raise EndingError(str(error)) from None


@bounded(count=8192, size=2 << 20, largest=512)
def _in_thousandths(text: str) -> str:
    """Return the canonical form of a quantity, rounded up to thousandths.

    Raises:
        EndingError: the text is not a quantity; the message is upstream's.
    """
    canonical = canonical_quantity(text)
    return (
        str(Quantity.parse(canonical).round_up(-3)) if canonical[-1] in "nu" or "e-" in canonical.lower() else canonical
    )


def _int_or_string(value: Any) -> Any:
    if value.__class__ is str:
        return value
    if value is None:
        return 0
    if value.__class__ is not int or not -(1 << 31) <= value < 1 << 31:
        raise Mismatch(value, "int32", ends=True)
    return value


def _anything(value: Any) -> Any:
    return value


def _duration(value: Any) -> Any:
    if value is None:
        return ABSENT
    if value.__class__ is not str:
        raise Mismatch(value, "string", ends=True)
    try:
        parse_nanoseconds(value)
    except ValueError as error:
        raise EndingError(str(error)) from None
    return value


def nonzero_duration(value: Any) -> Any:
    """Return a duration, or ABSENT for zero, which Go only distinguishes from a missing one if it is a pointer.

    Raises:
        EndingError: the value is not a duration, or null. Go calls the unmarshaler with null too, unless the field is a
            pointer, and it parses an empty text.
        Mismatch: the value is not a string.
    """
    decoded = _duration("" if value is None else value)
    return decoded if parse_nanoseconds(decoded) else ABSENT


_WALKS: Final[dict[str, Walk]] = {
    "Time": time,
    "MicroTime": micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "RawExtension": _anything,
    "FieldsV1": _anything,
    "JSON": _anything,
}


def _schema_or(name: str, node: SchemaNode, field_walk: Callable[[SchemaNode, SchemaNode], Walk]) -> Walk:
    """Return the decoder of a union type of CRD schemas: a schema, or else a boolean, a list of schemas or of strings.

    Args:
        name: JSONSchemaPropsOrBool, JSONSchemaPropsOrArray or JSONSchemaPropsOrStringArray.
        node: the schema of the union type, whose `items` is that of JSONSchemaProps.
        field_walk: returns the decoder of a value, called with its schema and the schema of the type that contains it.
            It is called for the schemas in the union, with `node.items` and `node`.
    """
    assert node.items is not None
    schema = node.items

    def walk(value: Any) -> Any:
        if value.__class__ is dict:
            return field_walk(schema, node)(value)
        if value.__class__ is list and name.endswith("Array"):
            if name.endswith("StringArray"):
                for item in value:
                    if item.__class__ is not str:
                        raise Mismatch(item, "string", ends=True)
                return value
            return [field_walk(schema, node)(item) for item in value] or ABSENT
        if name.endswith("Array"):  # Go's decoder ignores any other value
            return ABSENT
        if value.__class__ is bool:
            return value
        raise EndingError("boolean or JSON schema expected")

    return walk
