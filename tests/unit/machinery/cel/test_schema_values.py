"""Tests of values that have a schema: equality and sums of objects, sets and lists with keys.

Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery.cel.environment import Environment
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.schema_types import declared
from tetrapod.machinery.cel.schema_values import bound
from tetrapod.machinery.schema.structural import build

STRING: dict[str, Any] = {"type": "string"}
NULLABLE: dict[str, Any] = {"type": "string", "nullable": True}


def evaluate(schema: dict[str, Any], own: Any, old: Any, rule: str = "self == oldSelf") -> Any:
    node = build(schema)
    decl = declared(node)
    assert decl is not None
    environment = Environment(dict.fromkeys(("self", "oldSelf"), decl.named("selfType")))
    return environment.compile(rule).evaluate({"self": bound(node, own), "oldSelf": bound(node, old)})


def map_list(*keys: str, **fields: Any) -> dict[str, Any]:
    items = {"type": "object", "properties": {**dict.fromkeys(keys, STRING), **fields}}
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": items,
    }


def set_list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "x-kubernetes-list-type": "set", "items": items}


@pytest.mark.parametrize(
    ("own", "old", "equal"),
    [
        ({"a": None}, {"a": None}, True),
        ({"a": None, "b": "x"}, {"a": None, "b": "x"}, True),
        ({"a": None}, {"a": "x"}, False),
        ({"a": "x"}, {"a": None}, False),
        ({"a": None}, {"b": None}, True),  # both are missing
        ({"a": None}, {}, False),  # the number of members differs
        ({"a": None}, {"b": "x"}, True),  # upstream visits only the members of the first
        ({"b": "x"}, {"a": None}, False),
    ],
)
def test_a_null_field_equals_a_missing_one(own: Any, old: Any, equal: bool) -> None:
    assert evaluate({"type": "object", "properties": {"a": NULLABLE, "b": NULLABLE}}, own, old) is equal


@pytest.mark.parametrize(
    ("own", "old", "equal"),
    [
        ({"a": "x", "u": 1}, {"a": "x", "u": 1}, True),
        ({"a": "x", "u": 1}, {"a": "x", "u": 2}, False),
        ({"a": "x", "u": 1}, {"a": "x", "u": 1.5}, False),
        ({"a": "x", "u": {"b": [1]}}, {"a": "x", "u": {"b": [2]}}, False),
        ({"a": "x", "u": 1}, {"a": "x", "v": 2}, True),  # upstream compares only undeclared members of both
        ({"a": "x", "u": 1}, {"a": "x"}, False),
    ],
)
def test_undeclared_members_of_objects_are_compared(own: Any, old: Any, equal: bool) -> None:
    schema = {"type": "object", "properties": {"a": STRING}, "x-kubernetes-preserve-unknown-fields": True}
    assert evaluate(schema, own, old) is equal


def test_lists_with_keys_are_equal_in_any_order_also_with_nulls() -> None:
    schema = map_list("k", "l", v={"x-kubernetes-int-or-string": True, "nullable": True})
    own: list[Any] = [{"k": "a", "l": "x", "v": None}, {"k": "a", "l": "y", "v": 1}]
    assert evaluate(schema, own, own[::-1]) is True
    assert evaluate(schema, own, [own[0], {**own[1], "v": 2}]) is False


def test_lists_with_repeated_keys_are_equal_only_if_they_have_the_same_keys() -> None:
    a, b = {"k": "a"}, {"k": "b"}
    assert evaluate(map_list("k"), [a, b], [a, a]) is False
    assert evaluate(map_list("k"), [a, a], [a, b]) is False
    assert evaluate(set_list(STRING), ["a", "b"], ["a", "a"]) is False


def test_comparison_finds_no_key_whose_name_must_be_escaped() -> None:
    own = [{"a-b": "x"}, {"a-b": "y"}]
    assert evaluate(map_list("a-b"), own[:1], own[:1]) is True
    assert evaluate(map_list("a-b"), own, own) is False
    assert evaluate(map_list("a-b"), own, own, "self + oldSelf == oldSelf + self") is True


def test_elements_of_sets_that_are_no_scalars_cannot_be_compared() -> None:
    schema = set_list({"type": "array", "items": STRING})
    for rule in ("self == oldSelf", "(self + oldSelf).size() == 1"):
        with pytest.raises(EvaluationError, match=r"^listSet operations are only supported on lists of scalar values$"):
            evaluate(schema, [["a"]], [["a"]], rule)


def test_a_sum_of_sets_has_each_new_element_once() -> None:
    rule = "self + oldSelf == ['a', 'b', 'c'] && (self + oldSelf)[2] == 'c'"
    assert evaluate(set_list(STRING), ["a", "b"], ["c", "a", "c"], rule) is True
