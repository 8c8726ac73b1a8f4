"""Applies the result of a mutation expression to an object: a JSON patch or an apply configuration.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go, smd.go;
pkg/cel/mutation/dynamic/objects.go
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.json_values import json_value
from tetrapod.machinery.cel.time import in_zone
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.cel.values import (
    NONE,
    Duration,
    ObjectLike,
    Optional,
    Special,
    StructValue,
    Timestamp,
    Uint,
    find,
    type_of_value,
)
from tetrapod.machinery.fieldmanager.merge import merge
from tetrapod.machinery.fieldmanager.typed import LIST, MAP, OBJECT_META, SchemaError, Type, compile_root
from tetrapod.machinery.fieldmanager.validate import join, validate
from tetrapod.machinery.golang.durations import format_nanoseconds
from tetrapod.machinery.golang.formatting import GoValue
from tetrapod.machinery.golang.json_numbers import integral
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.patch.json_patch import JSONPatchError, TestFailed, apply_operations
from tetrapod.machinery.schema.number_conversion import as_filled
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types import load

_NULL_OPERAND: Final = object()
"""The operand null of a `test`, which equals no value: in upstream it is the text `null`, and missing members and null
have no text.
"""


class MutationError(Exception):
    """A mutation cannot be applied; the text is upstream's."""


def json_patch(obj: Object, value: list[StructValue]) -> Object:
    """Return a copy of `obj` patched by `value`, the `JSONPatch` objects of an expression.

    If a `test` operation fails, return `obj` itself.

    Raises:
        MutationError: an operation cannot be applied.
    """
    operations = [_operation(fields) for fields in value]
    try:
        patched: Object = apply_operations(obj, operations)
    except TestFailed:
        return obj
    except JSONPatchError as error:
        raise MutationError(f"JSON Patch: {error}") from None
    return patched


def _operation(value: StructValue) -> Object:
    fields = value.fields
    operation: Object = {"op": _quotable(fields.get("op", "")), "path": _quotable(fields.get("path", ""))}
    if source := fields.get("from"):
        operation["from"] = _quotable(source)
    if "value" in fields:
        operand = fields["value"]
        if isinstance(operand, StructValue):
            _check_names(operand)
        try:
            operation["value"] = integral(json_value(operand))
        except EvaluationError as error:
            raise MutationError(
                f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            ) from None
        if operand is None and operation["op"] == "test":
            operation["value"] = _NULL_OPERAND
    return operation


def _quotable(text: str) -> str | None:
    """Return a text, or None if Go quotes it with an escape that JSON does not have, as it does with control bytes.

    Upstream writes the operation as JSON in this way, and finds no text then.
    """
    try:
        orjson.loads(go_quote(text))
    except orjson.JSONDecodeError:
        return None
    return text


def apply_configuration(obj: Object, value: StructValue, schema: SchemaNode | None) -> Object:
    """Return a copy of `obj` into which `value`, the `Object` of an expression, is merged.

    managedFields are not changed.

    Args:
        schema: the schema of the object; None is an error.

    Raises:
        MutationError: the configuration does not fit the type, or would change an atomic list, map or struct.
    """
    _check_names(value)
    config = {**_native(value), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    try:
        if schema is None:
            kind = GroupVersion.parse(obj["apiVersion"]).with_kind(obj["kind"])
            raise MutationError(f"failed to convert patch object to typed object: no corresponding type for {kind}")
        merged = _merge(obj, config, compile_root(schema, load(OBJECT_META)))
        return as_filled(merged, schema) if schema.definition else merged
    except (MutationError, SchemaError) as error:
        raise MutationError(f"error applying patch: {error}") from None


def _merge(obj: Object, config: Object, schema_type: Type) -> Object:
    if errors := validate(config, schema_type):
        raise MutationError(f"failed to convert patch object to typed object: {join(errors)}")
    if atomics := _atomics("", config, schema_type):
        raise MutationError(
            f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        )
    if errors := validate(obj, schema_type, allow_duplicates=True):
        raise MutationError(f"failed to convert original object to typed object: {join(errors)}")
    merged: Object = merge(obj, config, schema_type)
    return merged


_MOMENT: Final = "%Y-%m-%d %H:%M:%S"


def _foreign(value: Any) -> GoValue | None:
    """Return the Go value that upstream makes of a CEL value that JSON cannot represent (bytes, a timestamp, …).

    Return None for a value that JSON can represent. No field accepts such a Go value, so validation of the
    configuration fails with upstream's text.
    """
    match value:
        case None:
            return GoValue("NULL_VALUE", "structpb.NullValue")
        case Uint():
            return GoValue(str(int(value)), "uint64")
        case bytes():
            return GoValue(f"[{' '.join(map(str, value))}]", "[]uint8")
        case Duration():
            return GoValue(format_nanoseconds(value.ns), "time.Duration")
        case Timestamp():
            return GoValue(f"{in_zone(value, None).strftime(_MOMENT)} +0000 UTC", "time.Time")
        case Special():
            return GoValue(type_of_value(value).name, type_of_value(value).name)
        case _:
            return None


def _native(value: Any) -> Any:
    """Return a CEL value as JSON, with a `GoValue` for each part that JSON cannot represent, such as a timestamp.

    A type becomes its name, and an empty optional null.
    """
    if (foreign := _foreign(value)) is not None:
        return foreign
    if isinstance(value, Optional):
        return None if value is NONE else _native(value.value)
    if isinstance(value, list):
        return [_native(part) for part in value]
    if isinstance(value, dict | ObjectLike):
        if not all(isinstance(key, str) for key in value):
            return GoValue("map[ref.Val]ref.Val{…}", "map[ref.Val]ref.Val")
        return {key: _native(find(value, key)) for key in value}
    return value.name if isinstance(value, CelType) else value


def _atomics(path: str, value: Any, schema_type: Type | None) -> list[str]:
    """Return the paths of atomic lists, maps and structs in a part of an apply configuration.

    Args:
        path: the path of the part.
        value: the part.
        schema_type: its type; None if it is unknown, so that the result is [].
    """
    if schema_type is None:
        return []
    if isinstance(value, dict) and schema_type.kind_of(value) == MAP:
        paths = [path] if schema_type.map_atomic else []
        return paths + [
            text for key, part in value.items() for text in _atomics(f"{path}.{key}", part, schema_type.field(key))
        ]
    if isinstance(value, list) and schema_type.kind_of(value) == LIST:
        paths = [path] if schema_type.list_atomic else []
        return paths + [
            text for i, part in enumerate(value) for text in _atomics(f"{path}[{i}]", part, schema_type.items)
        ]
    return []


def _check_names(value: StructValue) -> None:
    """Check that each object in an apply configuration is constructed with the type of its field.

    The type for the field `spec` of `Object{…}` is `Object.spec{…}`.

    Raises:
        MutationError: an object has another type; the text lists all of them.
    """
    if wrong := _invalid_names(value, value.type_name):
        raise MutationError("type mismatch: " + "\n".join(wrong))


def _invalid_names(value: Any, expected: str) -> list[str]:
    if isinstance(value, StructValue):
        own = []
        if value.type_name != expected:
            text = (
                f'unexpected type name "{value.type_name}", expected "{expected}", '
                "which matches field name path from root Object type"
            )
            own.append(text)
        return own + [
            text for name, part in value.fields.items() for text in _invalid_names(part, f"{expected}.{name}")
        ]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _invalid_names(part, expected)]
