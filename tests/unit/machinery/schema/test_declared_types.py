"""Tests of whether the parts of an object have the types that its schema declares."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery.schema.declared_types import has_declared_types
from tetrapod.machinery.schema.structural import build

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "i": {"type": "integer"},
        "n": {"type": "number", "nullable": True},
        "b": {"type": "boolean"},
        "x": {"x-kubernetes-int-or-string": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"s": "", "i": 1, "n": 1.5, "b": True, "x": "a", "any": None, "l": [{"k": "v"}], "m": {"a": 1}},
        {"n": None, "x": 1, "l": [], "m": {}},
        {"undeclared": 1},
        {"l": [{"undeclared": 1}]},
    ],
)
def test_values_of_the_declared_types_are_recognized(value: Any) -> None:
    assert has_declared_types(build(SCHEMA), value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"s": 1},
        {"s": None},
        {"i": True},
        {"i": 1.0},
        {"n": "1"},
        {"b": 0},
        {"x": 1.5},
        {"l": {}},
        {"l": [None]},
        {"l": [{"k": 1}]},
        {"m": {"a": "x"}},
    ],
)
def test_a_value_of_another_type_is_found_at_any_depth(value: Any) -> None:
    assert not has_declared_types(build(SCHEMA), value)
