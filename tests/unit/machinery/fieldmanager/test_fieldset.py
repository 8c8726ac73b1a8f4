"""Tests of field sets: the algebraic laws of sets, and the wire format."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.fieldset import FieldSet
from tetrapod.machinery.fieldmanager.pathelement import key_element, order, show_path

ELEMENTS = st.sampled_from(
    ["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":443}', 'v:"s"', "v:2", "v:10", "i:3"]
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=8)


def built(paths: frozenset[tuple[str, ...]]) -> FieldSet:
    return fieldset.of_paths(sorted(paths))


def members(fields: FieldSet) -> frozenset[tuple[str, ...]]:
    return frozenset(fieldset.paths(fields))


@given(PATH_SETS)
def test_a_set_holds_the_paths_it_was_made_of(paths: frozenset[tuple[str, ...]]) -> None:
    fields = built(paths)
    assert members(fields) == paths
    assert all(fieldset.has(fields, path) for path in paths)
    assert fieldset.has(fields, ("f:a", "f:nowhere")) is False


@given(PATH_SETS, PATH_SETS)
def test_union_intersection_and_difference_are_those_of_sets(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    a, b = built(left), built(right)
    assert members(fieldset.union(a, b)) == left | right
    assert members(fieldset.intersection(a, b)) == left & right
    assert members(fieldset.difference(a, b)) == left - right
    assert fieldset.union(a, b) == fieldset.union(b, a)
    below = {path for path in left if any(path[:i] in right for i in range(1, len(path) + 1))}
    assert members(fieldset.recursive_difference(a, b)) == left - below
    assert (members(a), members(b)) == (left, right)


@given(PATH_SETS)
def test_the_wire_form_is_read_back_and_sorted_at_every_level(paths: frozenset[tuple[str, ...]]) -> None:
    fields = built(paths)
    text = orjson.dumps(fields)
    assert orjson.dumps(fieldset.decode(orjson.loads(text))) == text
    assert orjson.dumps(fieldset.decode(orjson.loads(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)))) == text
    levels: list[FieldSet] = [fields]
    while levels:
        level = levels.pop()
        assert all(order(left) < order(right) for left, right in pairwise(level))
        levels += level.values()


def test_field_sets_have_upstreams_order() -> None:
    wanted = [
        "f:A",
        "f:a",
        'k:{"a":1,"b":"x"}',
        'k:{"port":80}',
        'k:{"port":443}',
        "v:2",
        "v:10",
        'v:"1"',
        "v:true",
        "i:2",
        "i:10",
    ]
    assert list(fieldset.ordered({element: {} for element in reversed(wanted)})) == wanted


def test_elements_are_spelled_as_upstream_spells_them() -> None:
    fields: dict[str, Any] = {
        'k:{"b": 1.0, "a": "<\u00e9>"}': {},
        'v:"\\u0061"': {".": {}},
        "x:later": {},
        "f:f": {".": {}, "f:g": {}},
    }
    assert list(fieldset.decode(fields)) == ["f:f", 'k:{"a":"\\u003c\u00e9\\u003e","b":1}', 'v:"a"']
    assert fieldset.decode(fields)['v:"a"'] == {}


@pytest.mark.parametrize(
    "fields", [{"nonsense": {}}, {"f": {}}, {"k:[]": {}}, {"v:": {}}, {"i:x": {}}, [], "f:a", {"f:a": "x"}]
)
def test_invalid_field_sets_are_rejected(fields: object) -> None:
    with pytest.raises(ValueError):
        fieldset.decode(fields)


def test_paths_come_as_upstream_tells_conflicts() -> None:
    fields: dict[str, Any] = {"f:a": {'k:{"n":"x","p":1}': {".": {}, "f:b": {}}, "v:true": {}}, "f:c": {}}
    assert [show_path(path) for path in fieldset.paths(fields)] == [
        ".c",
        '.a[n="x",p=1]',
        ".a[=true]",
        '.a[n="x",p=1].b',
    ]


def test_filters_keep_what_an_endpoint_s_users_may_own() -> None:
    fields = fieldset.of_fields([("spec", "a"), ("spec", "b", "c"), ("status", "d"), ("spec",)])
    assert members(fieldset.exclude(fieldset.of_fields([("spec",)]))(fields)) == {("f:status", "f:d")}
    assert members(fieldset.include(("f:spec", "*", "f:c"))(fields)) == {
        ("f:spec",),
        ("f:spec", "f:a"),
        ("f:spec", "f:b", "f:c"),
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1e-7, "1e-07"),
        (1.5e-10, "1.5e-10"),
        (1e-6, "0.000001"),
        (0.25, "0.25"),
        (1000.0, "1000"),
        (1e22, "1e+22"),
        (True, "true"),
    ],
)
def test_keys_that_are_numbers_are_written_as_json_iterator_writes_them(value: float, written: str) -> None:
    assert key_element([("k", value)]) == f'k:{{"k":{written}}}'
