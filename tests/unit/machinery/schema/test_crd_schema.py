"""Tests of schemas in CRDs: accepted or rejected as recorded from a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import crd_schema
from tetrapod.machinery.schema.default_rules import validate_defaults

FACTS = Path(__file__).parents[3] / "facts/schema/crd_schemas.json"
AT = "spec.validation.openAPIV3Schema"


def recorded() -> list[Any]:
    return [
        pytest.param(case, id=f"{case['name']}-{number}") for number, case in enumerate(json.loads(FACTS.read_text()))
    ]


@pytest.mark.parametrize("case", recorded())
def test_recorded_schemas_have_upstreams_errors(case: Object) -> None:
    versions = case["versions"]
    found = []
    for index, version in enumerate(versions):
        path = AT if len(versions) == 1 else f"spec.versions[{index}].schema.openAPIV3Schema"
        found += [[e.field, e.type, e.body()] for e in crd_schema.validate(version["schema"], path)]
    assert found == case["causes"]


def texts(**schema: Any) -> list[str]:
    return [str(error) for error in crd_schema.validate({"type": "object", **schema}, "s")]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"a": {"type": "array"}}, ["s.properties[a].items: Required value: must be specified"]),
        ({"a": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}}, []),
        (
            {"a": {"type": "string", "anyOf": [{"type": "string"}]}},
            ["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        ({"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}}, []),
        (
            {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
            [
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                "but metadata is implicitly specified"
            ],
        ),
        (
            {
                "a": {
                    "type": "object",
                    "properties": {"b": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            },
            [
                (
                    "s.properties[a].additionalProperties: Forbidden: additionalProperties and "
                    "properties are mutual exclusive"
                )
            ],
        ),
    ],
)
def test_schemas_that_are_not_structural_are_rejected(properties: Object, expected: list[str]) -> None:
    assert texts(properties=properties) == expected


def test_fields_of_the_validations_of_the_root_must_be_declared() -> None:
    nested = {"properties": {"a": {"properties": {"b": {"minLength": 1}}}}}
    found = texts(properties={"a": {"type": "object"}}, allOf=[nested])
    text = "because it is defined in s.allOf[0].properties[a].properties[b]"
    assert found == [f"s.properties[a].properties[b]: Required value: {text}"]


def test_structural_errors_are_reported_only_without_other_errors() -> None:
    assert texts(**{"$schema": "x"}) == ["s: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"]
    assert texts(id="x") == ["s.id: Forbidden: id is not supported"]


def test_an_array_of_item_schemas_cannot_be_read_as_structural() -> None:
    items = {"type": "array", "items": [{"type": "string"}]}
    assert texts(properties={"a": items}) == [
        "s.properties[a].items: Forbidden: items must be a schema object and not an array"
    ]


def test_rules_of_old_crds_may_be_waived() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "String"}}}
    assert crd_schema.validate(schema, "s", crd_schema.Rules(valid_types=False)) == []
    schema = {"type": "object", "properties": {"a": {"type": "object", "default": {"b": 1}}}}
    assert crd_schema.validate(schema, "s") != []
    assert crd_schema.validate(schema, "s", crd_schema.Rules(pruned_defaults=False)) == []


def test_only_the_outermost_schema_may_name_types_to_say_integer_or_string() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert texts(properties={"a": {"x-kubernetes-int-or-string": True, "allOf": [either]}}) == []
    found = texts(
        properties={"a": {"x-kubernetes-int-or-string": True, "allOf": [{"maxLength": 1}, {"allOf": [either]}]}}
    )
    at = "s.properties[a].allOf[1].allOf[0].anyOf"
    assert found == [f"{at}[{i}].type: Forbidden: must be empty to be structural" for i in (0, 1)]


def test_defaults_inside_embedded_metadata_are_judged_by_the_object_around() -> None:
    meta = {"type": "object", "properties": {"namespace": {"type": "string", "default": "Not A Name"}}}
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": meta}}
    found = texts(properties={"tpl": embedded})
    assert len(found) == 1
    assert found[0].startswith(
        's.properties[tpl].properties[metadata].properties[namespace].default: Invalid value: "Not A Name": must result'
    )


def test_unknown_formats_cause_warnings() -> None:
    nested = {"items": {"format": "uint-64"}, "anyOf": [{"format": "odd"}]}
    numbers = {
        "b": {"type": "integer", "format": "int32"},
        "d": {"format": "date-time"},
        "e": {"type": "number", "format": "int64"},
    }
    properties = {
        "a": {"format": "bogus"},
        **numbers,
        "c": nested,
        "f": {"type": "object", "format": "date"},
        "g": {"format": "int32"},
    }
    assert crd_schema.unrecognized_formats({"properties": properties}) == [
        "bogus",
        "int64",
        "uint-64",
        "odd",
        "date",
        "int32",
    ]


def test_errors_about_items_hide_the_rules_of_the_list_not_those_of_the_items() -> None:
    rule = {"rule": "oldSelf == self"}
    items = {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [rule]}
    found = texts(
        properties={
            "l": {"type": "array", "x-kubernetes-list-type": "set", "items": items, "x-kubernetes-validations": [rule]}
        }
    )
    assert [text.partition(":")[0] for text in found] == [
        "s.properties[l].items.x-kubernetes-map-type",
        "s.properties[l].items.x-kubernetes-validations[0].rule",
    ]


def test_defaults_of_int_or_strings_are_judged_by_their_anyof() -> None:
    plain = {"x-kubernetes-int-or-string": True, "default": {}}
    assert texts(properties={"a": plain}) == []
    assert len(texts(properties={"a": {**plain, "anyOf": [{"type": "integer"}, {"type": "string"}]}})) == 2


@pytest.mark.parametrize(
    ("sent", "kept"), [({"name": "a", "zz": 1}, {"name": "a"}), ({"creationTimestamp": None}, {}), (None, {})]
)
def test_unknown_metadata_is_removed_from_the_default_of_an_embedded_resource(sent: Any, kept: Any) -> None:
    default = {"apiVersion": "v1", "kind": "Pod", "metadata": sent}
    embedded = {
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "default": default,
    }
    metadata = {"metadata": {"type": "object"}}
    assert (
        validate_defaults(
            {"type": "object", "properties": {"o": {"type": "object", **embedded, "properties": metadata}}}, ""
        )
        == []
    )
    assert default == {"apiVersion": "v1", "kind": "Pod", "metadata": kept}


def test_defaults_of_an_invalid_schema_are_not_validated() -> None:
    found = texts(
        properties={"a": {"type": "integer", "maximum": 1, "default": 2, "x-kubernetes-preserve-unknown-fields": False}}
    )
    assert len(found) == 1 and "must be true or undefined" in found[0]
