"""Tests of defaulting, pruning and validation of custom resources, as recorded from a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import custom_resources, listtypes, objectmeta, validation
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.json import decode

FACTS = Path(__file__).parents[3] / "facts/schema/custom_resources.json"


def cases() -> list[Any]:
    return [
        pytest.param(scenario["schema"], case, id=f"{scenario['name']}-{number}")
        for scenario in json.loads(FACTS.read_text())
        for number, case in enumerate(scenario["cases"])
    ]


def errors_of(node: SchemaNode, obj: Object) -> list[FieldError]:
    return validation.validate(node, obj) + objectmeta.validate_embedded(node, obj) + listtypes.validate(node, obj)


@pytest.mark.parametrize(("schema", "case"), cases())
def test_recorded_custom_resources(schema: Object, case: Object) -> None:
    node, obj = build(schema), decode(case["sent"].encode(), unstructured=True).obj
    custom_resources.decode(node, obj)
    found = [[error.field, error.type, error.body()] for error in errors_of(node, obj)]
    assert found == case.get("causes", [])
    if "answer" in case:
        assert {key: value for key, value in obj.items() if key != "metadata"} == case["answer"]


def spec_node(**schema: Any) -> SchemaNode:
    return build({"type": "object", "properties": {"spec": {"type": "object", **schema}}})


def test_unknown_fields_come_metadata_first_then_sorted_then_embedded() -> None:
    node = spec_node(
        properties={
            "tpl": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": {"type": "object"}},
            }
        }
    )
    tpl = {"apiVersion": "v1", "kind": "Pod", "metadata": {"bogus": 1}, "spec": {"y": 2}}
    found = custom_resources.decode(node, {"metadata": {"bogus": 1}, "extra": 1, "spec": {"tpl": tpl, "m": 1}})
    assert found == ["metadata.bogus", "extra", "spec.m", "spec.tpl.spec.y", "spec.tpl.metadata.bogus"]


def test_preserved_unknown_fields_stay_but_known_ones_below_are_pruned() -> None:
    known = {"type": "object", "properties": {"a": {"type": "string"}}}
    node = spec_node(**{"x-kubernetes-preserve-unknown-fields": True, "properties": {"known": known}})
    obj: Object = {"spec": {"free": {"x": 1}, "known": {"a": "x", "b": "y"}}}
    assert custom_resources.decode(node, obj) == ["spec.known.b"]
    assert obj["spec"] == {"free": {"x": 1}, "known": {"a": "x"}}


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("P1D", True),
        ("PT5M", True),
        ("1h 5m", True),
        ("2 Weeks", True),
        ("about 3 hours", True),
        ("1y", False),
        ("1month", False),
    ],
)
def test_a_duration_has_an_amount_of_some_unit_anywhere(text: str, good: bool) -> None:
    errors = validation.validate(build({"type": "string", "format": "duration"}), text)
    assert not errors if good else errors


def test_a_null_in_a_list_map_is_an_item_without_keys() -> None:
    node = build(
        {
            "type": "array",
            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    )
    assert listtypes.validate(node, [None]) == []
    assert [str(error) for error in listtypes.validate(node, [None, {}], "l")] == ["l[1]: Duplicate value: {}"]
    assert [error.field for error in listtypes.validate(node, ["a", 1], "l")] == ["l[0]"]


def test_defaults_are_copies() -> None:
    node = spec_node(properties={"l": {"type": "array", "items": {"type": "string"}, "default": ["x"]}})
    first: Object = {"spec": {}}
    custom_resources.decode(node, first)
    first["spec"]["l"].append("y")
    second: Object = {"spec": {}}
    custom_resources.decode(node, second)
    assert second["spec"] == {"l": ["x"]}


def test_embedded_resources_need_an_api_version_and_a_kind() -> None:
    node = spec_node(properties={"tpl": {"type": "object", "x-kubernetes-embedded-resource": True}})
    found = errors_of(node, {"spec": {"tpl": {"kind": "Not A Kind", "metadata": {"namespace": "Bad_NS"}}}})
    assert [error.field for error in found] == ["spec.tpl.apiVersion", "spec.tpl.kind", "spec.tpl.metadata.namespace"]


@pytest.mark.parametrize(
    ("rules", "value", "texts"),
    [
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 1},
            ['"spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
        ),
        ({"not": {"required": ["a"]}}, {"a": 1}, ['"spec" must not validate the schema (not)']),
        (
            {"allOf": [{"maxProperties": 1}]},
            {"a": 1, "b": 2},
            ["must have at most 1 item", '"spec" must validate all the schemas (allOf). None validated'],
        ),
    ],
)
def test_combinators_of_schemas_are_validated(rules: Object, value: Object, texts: list[str]) -> None:
    node = spec_node(**{**rules, "x-kubernetes-preserve-unknown-fields": True})
    assert [error.detail for error in validation.validate(node, {"spec": value})] == texts


def test_every_error_begins_with_its_path() -> None:
    node = build({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}})
    assert [error.field for error in validation.validate(node, {"l": [1]}, "default")] == ["default.l[0]"]


def errors(schema: Object, text: str) -> list[str]:
    node = build({"type": "object", "properties": {"a": schema}})
    return [
        error.body() for error in validation.validate(node, decode(b'{"a":%s}' % text.encode(), unstructured=True).obj)
    ]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "number", "maximum": 2.5}, "3", ["Invalid value: 3: a in body should be less than or equal to 2"]),
        (
            {"type": "number", "maximum": 2.5},
            "3.0",
            ["Invalid value: 3: a in body should be less than or equal to 2.5"],
        ),
        (
            {"type": "number", "maximum": 1000000},
            "2e6",
            ["Invalid value: 2e+06: a in body should be less than or equal to 1e+06"],
        ),
        (
            {"type": "number", "multipleOf": 0.5},
            "1",
            ["Invalid value: 0: factor MultipleOf declared for a must be positive: 0"],
        ),
        ({"type": "number", "multipleOf": 0.5}, "1.5", []),
        ({"type": "number", "multipleOf": 0.1}, "0.30000000000000004", []),
        ({"type": "boolean", "not": {}}, "true", ['Invalid value: "": "a" must not validate the schema (not)']),
        (
            {"type": "number", "maximum": 1e20},
            "3",
            ["Invalid value: 3: a in body should be less than or equal to -9223372036854775808"],
        ),
        (
            {"type": "object", "required": ["b"], "allOf": [{"required": ["b"]}]},
            "{}",
            ["Required value", 'Invalid value: "": "a" must validate all the schemas (allOf). None validated'],
        ),
        ({"type": "number", "enum": [1, 2.5]}, "1.7", []),
        ({"type": "number", "enum": [1, 2.5]}, "2.7", ['Unsupported value: 2.7: supported values: "1", "2.5"']),
        (
            {"type": "integer", "minimum": 1.5},
            "2",
            ['Invalid value: "": Minimum boundary value must be of type integer (default format) in a'],
        ),
        ({"type": "string", "format": "date"}, "[]", []),
        (
            {"type": "string", "format": "odd"},
            "[]",
            ['Invalid value: "array": a in body must be of type string: "array"'],
        ),
        (
            {"type": "string", "format": "odd"},
            "5",
            ['Invalid value: "integer": a in body must be of type string: "integer"'],
        ),
        (
            {"type": "string", "format": "date"},
            "5",
            ['Invalid value: "int64": a in body must be of type date: "int64"'],
        ),
        ({"type": "string", "format": "ipv4"}, '"010.0.0.1"', []),
        (
            {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "boolean"}},
            '{"x":true,"y":1}',
            [
                "Too many: 2: must have at most 1 item",
                'Invalid value: "integer": a.y in body must be of type boolean: "integer"',
            ],
        ),
    ],
)
def test_numbers_and_formats_are_judged_as_go_has_them(schema: Object, value: str, expected: list[str]) -> None:
    assert errors(schema, value) == expected
