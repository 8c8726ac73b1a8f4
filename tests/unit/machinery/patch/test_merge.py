"""Tests of JSON merge patch: recorded rejections and algebraic laws."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.patch import merge
from tetrapod.machinery.status import StatusError


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
    ],
)
def test_merging_follows_evanphx(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge.apply(document, patch) == expected
    assert (document, patch) == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "Invalid JSON Patch"),
        (5, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ([{}], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_a_body_that_is_no_object_is_rejected(body: Any, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        merge.apply({}, body)
    assert (raised.value.code, raised.value.message) == (400, message)


SCALARS = st.none() | st.booleans() | st.integers(-9, 9)
JSON = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_merging_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge.apply(merge.prune_nulls(document), patch)
    assert merge.apply(once, patch) == once
    assert all(k not in once for k, v in patch.items() if v is None)
