"""Tests of the equality of parts of built-in objects, as Go structs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.equality import same

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "1"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"a": None}, {}),
        ({"a": []}, {"a": None}),
        ({"a": {"b": [], "c": 1}, "d": [{"e": None}]}, {"a": {"c": 1}, "d": [{}]}),
        ([], None),
    ],
)
def test_null_and_an_empty_list_equal_a_missing_value(a: Any, b: Any) -> None:
    assert same(a, b)
    assert same(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"a": {}}, {}),
        ({"a": ""}, {}),
        ({"a": 0}, {}),
        ({"a": False}, {}),
        (1, True),
        (1, 1.0),
        ({"a": "1"}, {"a": 1}),
        ([1, 2], [2, 1]),
        ([1], [1, None]),
        ([None], [[], None]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}),
    ],
)
def test_other_values_differ(a: Any, b: Any) -> None:
    assert not same(a, b)
    assert not same(b, a)


def by_definition(a: Any, b: Any) -> bool:
    """Compare two values member by member."""
    if isinstance(a, dict) and isinstance(b, dict):
        return all(by_definition(a.get(key), b.get(key)) for key in {*a, *b})
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(by_definition, a, b))
    return (a in (None, []) and b in (None, [])) or (type(a) is type(b) and a == b)


def typed(value: Any) -> Any:
    """Return a value whose numbers are all integers, as decoding leaves those of an integer field."""
    if isinstance(value, dict):
        return {key: typed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return int(value) if isinstance(value, bool) else value


@given(VALUES, VALUES)
def test_typed_values_are_compared_member_by_member(a: Any, b: Any) -> None:
    a, b = typed(a), typed(b)
    assert same(a, b) == by_definition(a, b)
    assert same(a, a)
