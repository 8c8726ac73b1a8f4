"""Tests of structural schemas generated from pydantic models and JSON schemas."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from tetrapod.generic.aggregated.schemas import structural_schema
from tetrapod.machinery.schema.structural import build


class Place(BaseModel):
    room: str
    floor: int | None = None


class Spec(BaseModel):
    title: str = Field(min_length=1, description="What it is called.")
    price: float = Field(default=1.0, gt=0)
    kind: Literal["book"] = "book"
    size: int | str = 1
    places: list[Place] = []
    labels: dict[str, str] = {}
    anything: Any = None


class Thing(BaseModel):
    spec: Spec


class Tree(BaseModel):
    children: list[Tree] = []


def test_a_model_becomes_a_structural_schema() -> None:
    schema = structural_schema(Thing)
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    spec = schema["properties"]["spec"]["properties"]
    assert spec["title"] == {"type": "string", "minLength": 1, "description": "What it is called."}
    assert (spec["price"]["minimum"], spec["price"]["exclusiveMinimum"], spec["price"]["default"]) == (0, True, 1.0)
    assert spec["kind"]["enum"] == ["book"]
    assert spec["size"]["x-kubernetes-int-or-string"] is True
    assert spec["places"]["items"]["properties"]["floor"] == {"type": "integer", "nullable": True}
    assert spec["labels"]["additionalProperties"] == {"type": "string"}
    assert spec["anything"]["x-kubernetes-preserve-unknown-fields"] is True
    build(schema)


def test_a_structural_json_schema_is_unchanged() -> None:
    given: dict[str, Any] = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    schema = structural_schema(given)
    assert schema["properties"]["spec"] == given["properties"]["spec"]
    assert schema["required"] == ["spec"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Tree, "contains itself"),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "object"}]}}},
            "a union of types",
        ),
        ({"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}}, "tuples"),
    ],
)
def test_schemas_that_are_not_structural_are_rejected(given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        structural_schema(given)


class Choice(BaseModel):
    plain: Literal["a", "b"]
    none: Literal["a", "b", None] = None
    mixed: Literal["a", 1]
    unique: set[int] = set()
    time: timedelta
    own: Literal["a"] | None = Field(default=None, json_schema_extra={"x-kubernetes-validations": [{"rule": "own"}]})


def test_enums_that_permit_null_become_rules_where_rules_are_evaluated() -> None:
    rule = {"rule": 'self in ["a", "b"]', "message": 'must be one of "a", "b"'}
    properties = structural_schema(Choice, rules=True)["properties"]
    assert properties["plain"] == {"type": "string", "enum": ["a", "b"]}
    assert properties["none"] == {"type": "string", "nullable": True, "x-kubernetes-validations": [rule]}
    assert [each["rule"] for each in properties["own"]["x-kubernetes-validations"]] == ['self in ["a"]', "own"]
    assert structural_schema(Choice)["properties"]["none"] == {"type": "string", "nullable": True, "enum": ["a", "b"]}


def test_values_of_two_types_sets_and_formats_of_pydantic_are_converted() -> None:
    properties = structural_schema(Choice)["properties"]
    assert properties["mixed"] == {"x-kubernetes-int-or-string": True, "enum": ["a", 1]}
    assert properties["unique"]["x-kubernetes-list-type"] == "set"
    assert properties["time"] == {"type": "string"}
