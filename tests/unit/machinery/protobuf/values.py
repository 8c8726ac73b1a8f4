"""Hypothesis strategies that generate objects of built-in kinds from the schema of the kind."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.timestamps import format_micro, format_time
from tetrapod.machinery.types import schema_for

DEEPEST = 7
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9999, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
QUANTITIES = st.sampled_from(["0", "1", "500m", "64Mi", "1500M", "1e3", "-2", "10n", "12E"])
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def objects(kind: GroupVersionKind) -> st.SearchStrategy[Object]:
    return of(schema_for(kind), 0).map(lambda obj: {**obj, "kind": kind.kind, "apiVersion": kind.api_version})


@cache
def of(node: SchemaNode, depth: int) -> st.SearchStrategy[Any]:
    name = node.definition.rpartition(".")[2]
    if name.startswith("JSONSchemaPropsOr"):
        return _schema_or(name, node, depth)
    if name in {"FieldsV1", "RawExtension"}:
        return st.dictionaries(TEXT, JSON, max_size=3)
    if name == "JSON":
        return JSON.filter(lambda value: value is not None)
    if node.int_or_string:
        return INT32 | TEXT
    if node.type == "object" and node.properties:
        return _struct(node, depth)
    if node.type == "object" and node.additional_properties is None:
        return st.just({})
    if node.type == "object":
        assert node.additional_properties is not None
        return st.dictionaries(TEXT, of(node.additional_properties, depth + 1), min_size=1, max_size=2)
    if node.type == "array":
        assert node.items is not None
        return st.lists(of(node.items, depth + 1), min_size=1, max_size=2)
    return _scalar(node)


def _struct(node: SchemaNode, depth: int) -> st.SearchStrategy[Object]:
    if depth >= DEEPEST:
        return st.just({})
    names = [name for name in node.properties if name not in ("kind", "apiVersion") or depth]

    @st.composite
    def struct(draw: st.DrawFn) -> Object:
        chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
        return {name: draw(of(node.properties[name], depth + 1)) for name in chosen}

    return struct()


def _schema_or(name: str, node: SchemaNode, depth: int) -> st.SearchStrategy[Any]:
    assert node.items is not None
    schema = of(node.items, depth + 1)
    if name.endswith("Bool"):
        return schema | st.booleans()
    return schema | st.lists(TEXT if name.endswith("StringArray") else schema, min_size=1, max_size=2)


@cache
def _leaf(type_: str, format_: str) -> st.SearchStrategy[Any]:
    if format_ == "quantity":
        return QUANTITIES
    if format_ == "byte":
        return st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode())
    if type_ == "integer":
        return INT32 if format_ == "int32" else INT64
    if type_ == "number":
        return st.floats(-1e15, 1e15) | st.integers(-1000, 1000)
    return st.booleans() if type_ == "boolean" else TEXT


def _scalar(node: SchemaNode) -> st.SearchStrategy[Any]:
    if node.format == "date-time":
        return MOMENTS.map(format_micro if node.definition.endswith("MicroTime") else format_time)
    return _leaf(node.type, node.format)
