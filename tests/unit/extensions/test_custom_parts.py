"""Tests of pure functions for custom resources: field paths, columns, deprecation, selectable fields, ratcheting."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.extensions.custom.columns import table_convertor
from tetrapod.extensions.custom.definition import deprecation_warnings
from tetrapod.extensions.custom.strategy import selected_values
from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import validation
from tetrapod.machinery.schema.correlation import Correlation
from tetrapod.machinery.schema.fieldpath import PathError, resolve
from tetrapod.machinery.schema.structural import build

SCHEMA: Object = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "odd.name": {"type": "integer"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("path", "normal"), [(".a", "a"), ("['odd.name']", "odd.name"), (".m.key", "m[key]"), (".m['a b']", "m[a b]")]
)
def test_a_field_path_leads_to_a_schema(path: str, normal: str) -> None:
    found, schema = resolve(path, SCHEMA)
    assert found == normal
    assert schema is not None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a", "expected [ or . but got: a"),
        (".b", "does not refer to a valid field"),
        (".a.b", "does not refer to a valid field"),
        (".", "unexpected end of JSON path"),
        ("['a'", "unexpected end of JSON path"),
        ("[a]", "expected single quoted string but got a"),
    ],
)
def test_a_path_that_leads_nowhere_is_reported_why(path: str, text: str) -> None:
    with pytest.raises(PathError) as error:
        resolve(path, SCHEMA)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", {"a": 1}, '{"a":1}'),
        ("string", None, "<no value>"),
        ("integer", 1.5, 1),
        ("integer", "7", None),
        ("number", 3, 3),
        ("boolean", 0, None),
        ("date", "not a date", "<invalid>"),
        ("date", 17, None),
    ],
)
def test_a_cell_has_the_type_of_its_column(kind: str, value: Any, cell: Any) -> None:
    table = table_convertor([{"name": "A", "type": kind, "jsonPath": ".spec.a"}])
    assert table.row({"metadata": {"name": "w"}, "spec": {"a": value}}) == ["w", cell]


def test_without_columns_the_age_is_shown() -> None:
    assert [c.name for c in table_convertor(()).columns] == ["Name", "Age"]


def test_a_missing_field_leaves_its_cell_empty() -> None:
    table = table_convertor([{"name": "A", "type": "string", "jsonPath": ".spec.l[5]"}])
    assert table.row({"metadata": {"name": "w"}, "spec": {"l": []}}) == ["w", None]


def version(name: str, **more: Any) -> ServedVersion:
    return ServedVersion({"name": name, "served": True, "storage": False, **more}, preserve_unknown=False)


def test_a_deprecated_version_names_the_best_one_that_is_not() -> None:
    versions = [version("v1alpha1", deprecated=True), version("v1beta1"), version("v2"), version("v3", served=False)]
    assert deprecation_warnings("g.io", "W", versions) == {"v1alpha1": "g.io/v1alpha1 W is deprecated; use g.io/v2 W"}
    own = version("v1", deprecated=True, deprecationWarning="go away")
    assert deprecation_warnings("g.io", "W", [own]) == {"v1": "go away"}
    assert deprecation_warnings("g.io", "W", [version("v1", deprecated=True)]) == {"v1": "g.io/v1 W is deprecated"}


def test_selectable_values_are_texts() -> None:
    obj = {"spec": {"s": "x", "b": True, "i": 3, "n": None}}
    paths = ["spec.s", "spec.b", "spec.i", "spec.n", "spec.no"]
    assert selected_values(obj, paths) == {"spec.s": "x", "spec.b": "true", "spec.i": "3", "spec.n": "", "spec.no": ""}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5"), (1e21, "1e+21"), ({}, "map[]"), ({"b": [1, None], "a": "x"}, "map[a:x b:[1 <nil>]]"), ([], "[]")],
)
def test_selectable_values_of_types_that_the_schema_no_longer_declares_are_texts(value: Any, text: str) -> None:
    assert selected_values({"spec": value}, ["spec"]) == {"spec": text}


TWO: Object = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}
LISTS: Object = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "maxLength": 1},
        "t": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "m": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}},
            },
        },
        "any": {
            "type": "object",
            "anyOf": [{"required": ["x"]}],
            "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        },
        "some": {**TWO, "anyOf": [{"properties": {"x": {"enum": ["q"]}}}]},
        "no": {**TWO, "not": {"properties": {"x": {"maxLength": 1}}}},
        # never comparable
        "unknown": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "maxProperties": 0},
    },
}


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ({"s": "long"}, {"s": "long", "t": "changed"}, []),
        ({"s": "other"}, {"s": "long"}, ["s"]),
        ({"l": ["long"]}, {"l": ["long"], "t": "x"}, []),
        ({"l": ["long"]}, {"l": ["long", "b"]}, ["l[0]"]),
        ({"m": [{"k": "a", "v": "long"}]}, {"m": [{"k": "b"}, {"k": "a", "v": "long"}]}, []),
        ({"m": [{"k": "a", "v": "long"}]}, {"m": [{"k": "a", "v": "longer"}]}, ["m[0].v"]),
        ({"any": {}}, {"any": {}, "t": "x"}, []),
        ({"any": {}}, {"any": {"y": "z"}}, ["<nil>", "any.x"]),
        ({"m": [{"k": "a", "v": "long"}, {"k": "b"}]}, {"m": [{"k": "b"}, {"k": "a", "v": "long"}], "t": "x"}, []),
        ({"some": {"x": "z", "y": "a"}}, {"some": {"x": "z", "y": "a"}, "t": "x"}, []),
        ({"some": {"x": "z", "y": "a"}}, {"some": {"x": "z", "y": "b"}}, ["<nil>", "some.x"]),
        ({"some": {"x": "z", "y": "a"}}, {"some": {"x": "zz", "y": "a"}}, ["<nil>", "some.x"]),
        ({"no": {"x": "z"}}, {"no": {"x": "z"}, "t": "x"}, []),
        ({"no": {"x": "zzz"}}, {"no": {"x": "zzz", "y": "a"}}, []),
        ({"unknown": {"x": 1}}, {"unknown": {"x": 1}, "t": "x"}, ["unknown"]),
    ],
)
def test_an_update_is_not_rejected_for_unchanged_values(old: Object, new: Object, fields: list[str]) -> None:
    node = build(LISTS)
    found = validation.validate(node, new, correlation=Correlation(node, new, old))
    assert [e.field for e in found] == fields
