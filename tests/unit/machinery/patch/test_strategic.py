"""Tests of strategic merge patch: lists, directives and rejections, as recorded from a real server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.patch import strategic
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError


def node(type: str, **attributes: Any) -> SchemaNode:
    built = SchemaNode(type)
    for name, value in attributes.items():
        setattr(built, name, value)
    return built


STRING = node("string")
MERGE = frozenset({"merge"})


def named_list(items: SchemaNode, key: str = "name") -> SchemaNode:
    return node("array", items=items, patch_strategy=MERGE, patch_merge_key=key)


ENV = node("object", properties={"name": STRING, "value": STRING})
PORT = node("object", properties={"containerPort": node("integer"), "name": STRING, "protocol": STRING})
CONTAINER = node(
    "object",
    definition="io.k8s.api.core.v1.Container",
    properties={
        "name": STRING,
        "image": STRING,
        "args": node("array", items=STRING),
        "env": named_list(ENV),
        "ports": named_list(PORT, "containerPort"),
    },
)
SPEC = node(
    "object",
    definition="io.k8s.api.core.v1.PodSpec",
    properties={
        "containers": named_list(CONTAINER),
        "finalizers": node("array", items=STRING, patch_strategy=MERGE),
        "labels": node("object", additional_properties=STRING),
        "lists": node("object", additional_properties=node("array", items=STRING)),
        "strategy": node(
            "object",
            properties={"type": STRING, "rollingUpdate": node("object")},
            patch_strategy=frozenset({"retainKeys"}),
        ),
        "tolerations": node("array", items=node("object", properties={"key": STRING})),
    },
)


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": n, "image": f"{n}:1"} for n in names]


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"containers": containers("one", "two")},
            {"containers": [{"name": "three", "image": "i"}]},
            {"containers": [{"name": "three", "image": "i"}, *containers("one", "two")]},
        ),
        (
            {"containers": containers("one", "two")},
            {"containers": [{"name": "two", "image": "i"}]},
            {"containers": [*containers("one"), {"name": "two", "image": "i"}]},
        ),
        (
            {"containers": containers("one", "two", "three")},
            {"$setElementOrder/containers": [{"name": "two"}, {"name": "three"}, {"name": "one"}], "containers": []},
            {"containers": containers("two", "three", "one")},
        ),
        (
            {"containers": containers("one", "two")},
            {"containers": [{"$patch": "delete", "name": "two"}, {"$patch": "delete", "name": "nine"}]},
            {"containers": containers("one")},
        ),
        (
            {"containers": containers("one", "two")},
            {"containers": [{"$patch": "replace"}, {"name": "only"}]},
            {"containers": [{"name": "only"}]},
        ),
        (
            {"containers": [{"name": "one", "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]}]},
            {"containers": [{"name": "one", "env": [{"name": "B", "value": "b2"}, {"name": "C", "value": "c"}]}]},
            {
                "containers": [
                    {
                        "name": "one",
                        "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b2"}, {"name": "C", "value": "c"}],
                    }
                ]
            },
        ),
        (
            {"containers": [{"name": "one"}]},
            {
                "containers": [
                    {"name": "one", "$setElementOrder/ports": [{"containerPort": 80}], "ports": [{"containerPort": 80}]}
                ]
            },
            {"containers": [{"name": "one", "ports": [{"containerPort": 80}]}]},
        ),
        (
            {"containers": containers("one")},
            {"containers": [{"name": "one", "image": "a"}, {"name": "one", "image": "b"}]},
            {"containers": [{"name": "one", "image": "b"}]},
        ),
        ({"finalizers": ["a", "b"]}, {"finalizers": ["c"]}, {"finalizers": ["c", "a", "b"]}),
        (
            {"finalizers": ["c", "a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"]},
            {"finalizers": ["c", "b"]},
        ),
        ({}, {"$deleteFromPrimitiveList/finalizers": "x"}, {}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "c": "3"}}, {"labels": {"c": "3"}}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
        ({}, {"labels": {"$patch": "explode"}}, {}),
        ({}, {"labels": {"a": None, "b": "1"}}, {"labels": {"b": "1"}}),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": None}}, {"labels": {"b": "2"}}),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
        ),
        ({"labels": {"a": "1"}}, {"unknown": [{"a": "b"}]}, {"labels": {"a": "1"}, "unknown": [{"a": "b"}]}),
        ({"labels": {"a": "1"}}, {"labels": [1]}, {"labels": [1]}),
        ({"labels": {"a": "1"}}, {"$patch": "replace", "finalizers": []}, {"finalizers": []}),
        ({"containers": containers("one")}, {"containers": []}, {"containers": containers("one")}),
        ({"containers": containers("one")}, None, {"containers": containers("one")}),
    ],
)
def test_merging_by_schema(original: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(original)
    assert strategic.apply(original, copy.deepcopy(patch), SPEC) == expected
    assert original == before


def test_a_new_element_takes_the_place_of_a_deleted_one_among_elements_without_an_order() -> None:
    patch = {
        "containers": [{"name": "four"}, {"$patch": "delete", "name": "one"}],
        "$setElementOrder/containers": [{"name": "four"}],
    }
    merged = strategic.apply({"containers": containers("one", "two", "three")}, patch, SPEC)
    assert [container["name"] for container in merged["containers"]] == ["two", "three", "four"]


def test_directives_and_nulls_without_effect_are_gone_from_what_is_left_of_a_patch() -> None:
    patch = {"$retainKeys": ["a"], "a": {"x": None, "y": {"z": None}, "gone": {"$patch": "delete"}}}
    assert strategic.apply({"b": 1}, patch, SPEC) == {"a": {"y": {}}}
    assert patch == {"a": {"y": {}}}


@pytest.mark.parametrize(
    ("original", "patch", "message"),
    [
        (
            {"containers": containers("one")},
            {"containers": [{"image": "i:2"}]},
            "map: map[image:i:2] does not contain declared merge key: name",
        ),
        (
            {"containers": containers("one")},
            {"containers": [{"$patch": "explode", "name": "one"}]},
            "unknown patch type: explode in map: map[$patch:explode name:one]",
        ),
        (
            {"containers": containers("one", "two")},
            {"$setElementOrder/containers": [{"name": "two"}], "containers": [{"image": "i:2", "name": "one"}]},
            (
                "The order in patch list:\n[map[image:i:2 name:one]]\n doesn't match $setElementOrder list:\n"
                "[map[name:two]]\n"
            ),
        ),
        (
            {"strategy": {}},
            {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}},
            "invalid patch format of retainKeys",
        ),
        ({"strategy": {}}, {"strategy": {"$retainKeys": "type"}}, "invalid patch format of retainKeys"),
        (
            {"containers": containers("one")},
            {"containers": [{"$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
        ),
        ({"finalizers": ["a"]}, {"finalizers": [1]}, "list element types are not identical: [[a] [1]]"),
        ({}, {"$setElementOrder/finalizers": "x"}, "expected a []interface {}, but received a string"),
        (
            {"lists": {"a": ["x"]}},
            {"lists": {"a": ["y"]}},
            "merging an object in json but data type is not struct, instead is: map",
        ),
        ({}, [], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (
            {"containers": containers("one")},
            {"containers": [{}], "$setElementOrder/containers": ["x"]},
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"finalizers": [{}]},
            {"$deleteFromPrimitiveList/finalizers": [{}]},
            "cannot merge lists without merge key for string",
        ),
    ],
)
def test_misuse_is_a_bad_request_with_the_recorded_text(original: Any, patch: Any, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        strategic.apply(original, patch, SPEC)
    assert (raised.value.code, raised.value.reason, raised.value.message) == (400, "BadRequest", message)


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@given(NAMES, NAMES)
def test_a_merged_list_holds_both_and_keeps_the_order_of_the_patch(live: list[str], changes: list[str]) -> None:
    original, patch = {"containers": containers(*live)}, {"containers": [{"name": n, "image": "new"} for n in changes]}
    merged = strategic.apply(original, copy.deepcopy(patch), SPEC)
    names = [c["name"] for c in merged["containers"]]
    assert sorted(names) == sorted({*live, *changes})
    assert [n for n in names if n in changes] == changes
    assert [n for n in names if n not in changes] == [n for n in live if n not in changes]
    assert strategic.apply(merged, patch, SPEC) == merged


@given(NAMES, NAMES)
def test_the_order_directive_and_deletions_make_exactly_the_wanted_list(live: list[str], wanted: list[str]) -> None:
    patch = {
        "$setElementOrder/containers": [{"name": n} for n in wanted],
        "containers": [{"name": n, "image": "new"} for n in wanted]
        + [{"$patch": "delete", "name": n} for n in live if n not in wanted],
    }
    if live or wanted:
        merged = strategic.apply({"containers": containers(*live)}, patch, SPEC)
        assert [c["name"] for c in merged["containers"]] == wanted
