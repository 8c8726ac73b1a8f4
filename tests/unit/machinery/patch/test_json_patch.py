"""Tests of JSON patch: results recorded from a real server, and algebraic laws."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.patch import json_patch
from tetrapod.machinery.status import StatusError

DOCUMENT = {"data": {"one": "1"}, "list": ["a", "b"], "deep": {"x/y": {"~": [1]}}}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/data/two", "value": "2"}], {"data": {"one": "1", "two": "2"}}),
        ([{"op": "replace", "path": "/data/absent", "value": "x"}], {"data": {"one": "1", "absent": "x"}}),
        ([{"op": "add", "path": "/data/x"}], {"data": {"one": "1", "x": None}}),
        ([{"op": "add", "path": "data/x", "value": "y"}], {"x": "y"}),
        ([{"op": "add", "path": "/list/-", "value": "c"}], {"list": ["a", "b", "c"]}),
        ([{"op": "add", "path": "/list/-1", "value": "c"}], {"list": ["a", "b", "c"]}),
        ([{"op": "add", "path": "/list/1", "value": "c"}], {"list": ["a", "c", "b"]}),
        ([{"op": "remove", "path": "/list/-1"}], {"list": ["a"]}),
        ([{"op": "replace", "path": "/list/-2", "value": "z"}], {"list": ["z", "b"]}),
        ([{"op": "test", "path": "/data/absent", "value": None}], {}),
        ([{"op": "test", "path": "/data/absent"}], {}),
        ([{"op": "test", "path": "/deep/x~1y/~0/0", "value": 1}], {}),
        ([{"op": "test", "path": "", "value": DOCUMENT}], {}),
        ([{"op": "move", "from": "/data/one", "path": "/data/two"}], {"data": {"two": "1"}}),
        ([{"op": "copy", "from": "/list", "path": "/data/l"}, {"op": "remove", "path": "/list/0"}], None),
        ([{"op": "replace", "path": "", "value": {}}], "empty"),
    ],
)
def test_operations_do_what_the_recorded_server_did(operations: list[Any], expected: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    result = json_patch.apply(DOCUMENT, operations)
    assert before == DOCUMENT
    if expected is None:
        assert result == {**DOCUMENT, "list": ["b"], "data": {"one": "1", "l": ["a", "b"]}}
    elif expected == "empty":
        assert result == {}
    else:
        assert result == {**DOCUMENT, **expected}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "frob", "path": "/data/x", "value": "y"},
        {"path": "/data/x", "value": "y"},
        {"op": "add", "value": "y"},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/absent/x", "value": "y"},
        {"op": "add", "path": "/list/3", "value": "y"},
        {"op": "remove", "path": "/data/absent"},
        {"op": "remove", "path": "/list/9"},
        {"op": "remove", "path": "/list/-3"},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "replace", "path": "", "value": 5},
        {"op": "move", "path": "/data/x"},
        {"op": "move", "from": "/data/absent", "path": "/data/x"},
        {"op": "test", "path": "/data/one", "value": "other"},
        {"op": "test", "path": "/data/one", "value": None},
        {"op": "test", "path": "/deep/x~1y/~0/0", "value": True},
        {"op": "test", "path": "/deep/x~1y/~0/0", "value": 1.0},
    ],
)
def test_a_failing_operation_hides_its_cause(operation: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as raised:
        json_patch.apply(DOCUMENT, [operation])
    assert (raised.value.code, raised.value.reason, raised.value.details) == (422, "Invalid", {})
    assert raised.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({}, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (
            ["add"],
            400,
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
        ),
        (
            [{"op": "test", "path": ""}] * 10_001,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
    ],
)
def test_a_body_that_is_no_patch_is_rejected(body: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        json_patch.apply(DOCUMENT, body)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_copies_may_not_multiply_without_end() -> None:
    operations = [{"op": "copy", "from": "/a", "path": f"/a/{i}"} for i in range(40)]
    with pytest.raises(json_patch.JSONPatchError, match="accumulated size"):
        json_patch.apply_operations({"a": {"text": "x" * 1000}}, operations)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("ab/~", min_size=1, max_size=3), JSON, max_size=4)


@given(OBJECTS, st.text("ab/~", min_size=1, max_size=3), JSON)
def test_an_added_value_tests_equal_and_nothing_else_changes(document: dict[str, Any], key: str, value: Any) -> None:
    before = copy.deepcopy(document)
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    result = json_patch.apply(
        document, [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    )
    assert result == {**before, key: value}
    assert document == before
    assert json_patch.apply(result, [{"op": "remove", "path": path}]) == {k: v for k, v in before.items() if k != key}


LONG = 10_000
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "replace", "move", "test", "copy"]), st.integers(0, LONG + 20)),
    max_size=12,
)


@given(CHANGES)
def test_a_long_list_changes_as_a_short_one(changes: list[tuple[str, int]]) -> None:
    expected: list[Any] = list(range(LONG))
    operations: list[dict[str, Any]] = []
    copies = 0
    for op, place in changes:
        index = min(place, len(expected) - 1)
        path = f"/list/{index}"
        match op:
            case "add":
                operations.append({"op": op, "path": path, "value": place})
                expected.insert(index, place)
            case "remove":
                operations.append({"op": op, "path": path})
                del expected[index]
            case "replace":
                operations.append({"op": op, "path": path, "value": -place})
                expected[index] = -place
            case "move":
                operations.append({"op": op, "from": path, "path": "/list/-"})
                expected.append(expected.pop(index))
            case "test":
                operations += [
                    {"op": op, "path": path, "value": expected[index]},
                    {"op": op, "path": "/list", "value": expected.copy()},
                ]
            case _:
                operations += [
                    {"op": "copy", "from": "/list", "path": "/copy"},
                    {"op": "add", "path": "/copy/0", "value": "only there"},
                ]
                copies += 1
    document = {"list": list(range(LONG))}
    result = json_patch.apply(document, operations)
    assert result["list"] == expected
    assert ("copy" in result) == bool(copies)
    assert document == {"list": list(range(LONG))}


def test_an_index_of_many_digits_does_not_apply() -> None:
    for digits in ("9" * 19, "9" * 5_000):
        with pytest.raises(json_patch.JSONPatchError, match="value was not a proper array index"):
            json_patch.apply_operations({"a": [1]}, [{"op": "remove", "path": f"/a/{digits}"}])
    assert json_patch.apply({"a": [1]}, [{"op": "remove", "path": f"/a/{'0' * 30}"}]) == {"a": []}


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"op": "remove", "path": 1}, "remove operation failed to decode path: missing value"),
        ({"op": "copy", "from": "/list"}, "copy operation failed to decode path: missing value"),
        (
            {"op": "move", "from": "/list/0"},
            "move operation failed to decode path: operation missing path field: missing value",
        ),
        (
            {"op": "add", "path": "/list/5/x", "value": 1},
            'add operation does not apply: doc is missing path: "/list/5/x": missing value',
        ),
        ({"op": 1, "path": "/x"}, "Unexpected kind: unknown"),
        ({"op": "frob", "path": "/x"}, "Unexpected kind: frob"),
        ({"op": "replace", "path": "", "value": "x"}, "replace operation value must be object or array: %!w(<nil>)"),
    ],
)
def test_failed_operations_have_upstreams_texts(operation: Any, text: str) -> None:
    with pytest.raises(json_patch.JSONPatchError, match=f"^{re.escape(text)}$"):
        json_patch.apply_operations(DOCUMENT, [operation])
