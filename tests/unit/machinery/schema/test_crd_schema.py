"""Schemas of CRDs are refused, or not, as recorded of the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tetrapod.machinery.field import FieldError, invalid
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import crd_schema
from tetrapod.machinery.schema.default_rules import DefaultOptions

FACTS = Path(__file__).parents[3] / "facts/schema/crd_schemas.json"
AT = "spec.validation.openAPIV3Schema"


def recorded() -> list[Any]:
    return [pytest.param(case, id=f"{case['name']}-{number}") for number, case in enumerate(json.loads(FACTS.read_text()))]


@pytest.mark.parametrize("case", recorded())
def test_recorded_schemas(case: Object) -> None:
    versions = case["versions"]
    found = []
    for index, version in enumerate(versions):
        path = AT if len(versions) == 1 else f"spec.versions[{index}].schema.openAPIV3Schema"
        found += [[e.field, e.type, e.body()] for e in crd_schema.validate(version["schema"], path, status=version["status"])]
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
            {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}},
            ["s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
    ],
)
def test_structural_rules(properties: Object, expected: list[str]) -> None:
    assert texts(properties=properties) == expected


def test_what_the_roots_validations_speak_of_must_be_declared() -> None:
    nested = {"properties": {"a": {"properties": {"b": {"minLength": 1}}}}}
    found = texts(properties={"a": {"type": "object"}}, allOf=[nested])
    text = "because it is defined in s.allOf[0].properties[a].properties[b]"
    assert found == [f"s.properties[a].properties[b]: Required value: {text}"]


def test_what_cannot_be_read_as_structural_is_told_only_when_nothing_else_is() -> None:
    assert texts(**{"$schema": "x"}) == ["s: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"]
    assert texts(id="x") == ["s.id: Forbidden: id is not supported"]


def test_rules_of_old_crds_may_be_waived() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "String"}}}
    options = crd_schema.Options(structural=False, valid_types=False)
    assert crd_schema.validate(schema, "s", options=options) == []


def test_cel_rules_are_checked_where_the_schema_is_sound() -> None:
    seen: list[tuple[str, str]] = []

    def check(schema: Any, path: str, uncorrelatable: str) -> list[FieldError]:
        seen.append((path, uncorrelatable))
        return []

    rules = {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}
    properties = {"a": rules, "l": {"type": "array", "items": rules}, "bad": {**rules, "uniqueItems": True}}
    crd_schema.validate({"type": "object", "properties": properties}, "s", options=crd_schema.Options(check_rules=check))
    assert seen == [("s.properties[a]", ""), ("s.properties[l].items", "s.properties[l]")]


def test_defaults_must_fulfil_rules_too() -> None:
    def check(schema: Any, value: Any, path: str) -> list[FieldError]:
        return [invalid(path, value, "no")] if value == 3 else []

    options = crd_schema.Options(defaults=DefaultOptions(check=check))
    schema = {"type": "object", "properties": {"a": {"type": "integer", "default": 3}}}
    assert [str(e) for e in crd_schema.validate(schema, "s", options=options)] == ["s.properties[a].default: Invalid value: 3: no"]


def test_defaults_inside_embedded_metadata_are_judged_by_the_object_around() -> None:
    meta = {"type": "object", "properties": {"namespace": {"type": "string", "default": "Not A Name"}}}
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": meta}}
    found = texts(properties={"tpl": embedded})
    assert len(found) == 1
    assert found[0].startswith(
        's.properties[tpl].properties[metadata].properties[namespace].default: Invalid value: "Not A Name": must result'
    )


def test_formats_that_nobody_checks_are_listed_once() -> None:
    properties = {"a": {"format": "bogus"}, "b": {"format": "int32"}, "c": {"format": "bogus"}, "d": {"format": "date-time"}}
    assert crd_schema.unrecognized_formats({"properties": properties}) == ["bogus"]
