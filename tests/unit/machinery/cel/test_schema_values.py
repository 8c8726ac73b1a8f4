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


def evaluate_checked(schema: dict[str, Any], value: Any, rule: str) -> Any:
    node = build(schema)
    decl = declared(node)
    assert decl is not None
    return (
        Environment({"self": decl.named("selfType")}).compile(rule).evaluate({"self": bound(node, value, checked=True)})
    )


OTHER_TYPES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "s": STRING,
        "b": {"type": "boolean"},
        "x": {"x-kubernetes-int-or-string": True},
        "o": {"type": "object", "properties": {"s": STRING}},
        "m": {"type": "object", "additionalProperties": STRING},
        "l": {"type": "array", "items": {"type": "integer"}},
        "any": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
    },
}


@pytest.mark.parametrize(
    ("value", "rule", "message"),
    [
        ({"i": "x"}, "self.i > 0", "invalid data, expected int, got string"),
        ({"i": "x"}, "has(self.i)", "invalid data, expected int, got string"),
        ({"i": "x"}, "self.?i.orValue(1) > 0", "invalid data, expected int, got string"),
        ({"s": 1}, "self.s == ''", "invalid data, expected string, got int64"),
        ({"b": "x"}, "self.b", "invalid data, expected bool, got string"),
        (
            {"x": True},
            "self.x == 1",
            "invalid data, expected XIntOrString value to be either a string or integer",
        ),
        (
            {"any": {"k": 1.5}},
            "self.any.k == 1",
            "invalid data, expected XIntOrString value to be either a string or integer",
        ),
        ({"o": "x"}, "has(self.o.s)", "invalid data, expected a map for the provided schema with type=object"),
        ({"m": {"k": 1}}, "self.m.k == ''", "invalid data, expected string, got int64"),
        ({"m": {"k": None}}, "self.m.k == ''", "invalid data, got null for schema with nullable=false"),
        ({"l": [1, "x"]}, "self.l.all(e, e > 0)", "invalid data, expected int, got string"),
        ({"l": [1, "x"]}, "self.l.map(e, e + 1).size() == 2", "invalid data, expected int, got string"),
        ({"l": [1, "x"]}, "self.l[1] > 0", "invalid data, expected int, got string"),
        ({"l": "x"}, "self.l.size() == 1", "invalid data, expected an array for the provided schema with type=array"),
    ],
)
def test_a_rule_fails_if_it_uses_a_value_of_another_type_than_declared(value: Any, rule: str, message: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        evaluate_checked(OTHER_TYPES, value, rule)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"i": "x", "s": "a"}, "self.s == 'a'"),
        ({"l": [1, "x"]}, "self.l.size() == 2 && self.l[0] == 1"),
        ({"l": ["x", 1]}, "self.l.exists(e, e > 0)"),
        ({"l": [1, "x"]}, "self.l.exists(i, e, i == 1)"),
    ],
)
def test_a_rule_may_use_values_beside_one_of_another_type(value: Any, rule: str) -> None:
    assert evaluate_checked(OTHER_TYPES, value, rule) is True
