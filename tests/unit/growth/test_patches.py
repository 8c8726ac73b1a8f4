"""Tests that applying a patch takes time linear in the patch and the object, for any content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.growth import assert_linear
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.patch import json_patch, merge, strategic
from tetrapod.machinery.types import schema_for

POD = schema_for(GroupVersionKind("", "v1", "Pod"))
SERVICE = schema_for(GroupVersionKind("", "v1", "Service"))


def names(size: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{i}" for i in range(size)]


def named(size: int, prefix: str = "a", **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names(size, prefix)]


def container(env: list[Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "env": env, **more}]}}


def ordered(size: int, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "$setElementOrder/env": named(size)[::-1], **more}]}}


STRATEGIC: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "delete each": lambda n: (container(named(n)), container(named(n, **{"$patch": "delete"}))),
    "delete others": lambda n: (container(named(n)), container(named(n, "b", **{"$patch": "delete"}))),
    "change each": lambda n: (container(named(n)), container(named(n, value="x")[::-1])),
    "add as many": lambda n: (container(named(n)), container(named(n, "b"))),
    "replace": lambda n: (container(named(n)), container([{"$patch": "replace"}, *named(n, "b")])),
    "order": lambda n: (container(named(n)), ordered(n)),
    "order and change": lambda n: (container(named(n)), ordered(n, env=named(n, value="x")[::-1])),
    "order of none": lambda n: (container(named(n)), container(named(n, "b"), **{"$setElementOrder/env": []})),
    "order of others": lambda n: (
        container(named(n)),
        container(named(n, "b"), **{"$setElementOrder/env": named(n, "c")}),
    ),
    "order of one with a long name": lambda n: (container([]), ordered(n, env=named(1, "x" * 10 * n))),
    "one element again and again": lambda n: (
        container(named(1)),
        container([{"name": "a0", "value": str(i)} for i in range(n)]),
    ),
    "ports alike": lambda n: (
        {"spec": {"ports": [{"port": 1 + i} for i in range(n)]}},
        {"spec": {"ports": [{"port": 1 + i % 9} for i in range(n)]}},
    ),
    "finalizers": lambda n: ({"metadata": {"finalizers": names(n)}}, {"metadata": {"finalizers": names(n, "b")}}),
    "finalizers deleted": lambda n: (
        {"metadata": {"finalizers": names(n)}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": names(n), "$setElementOrder/finalizers": names(n)[::-1]}},
    ),
    "owners": lambda n: (
        {"metadata": {"ownerReferences": [{"uid": uid} for uid in names(n)]}},
        {"metadata": {"ownerReferences": [{"uid": uid, "kind": "K"} for uid in names(n)]}},
    ),
    "keys retained": lambda n: (
        {"spec": {"volumes": [{"name": "v", "hostPath": {}}] * n}},
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", *names(n)]}]}},
    ),
    "labels": lambda n: (
        {"metadata": {"labels": dict.fromkeys(names(n), "x")}},
        {"metadata": {"labels": dict.fromkeys(names(n))}},
    ),
}


@pytest.mark.parametrize("case", STRATEGIC)
def test_strategic_merge_is_linear(case: str) -> None:
    node = SERVICE if case == "ports alike" else POD
    assert_linear(lambda given: strategic.apply(given[0], given[1], node), STRATEGIC[case])


def test_a_strategic_merge_of_one_list_again_and_again_is_rejected() -> None:
    """Each element with a merge key merges the whole list: the only patch whose time is still quadratic."""
    patch = {"spec": {"containers": [{"name": "c", "env": named(1)} for _ in range(2_000)]}}
    with pytest.raises(Exception, match="merges the same elements too many times"):
        strategic.apply(container(named(2_000)), patch, POD)


def operations(size: int, *kinds: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"value": 1, **kinds[i % len(kinds)]} for i in range(min(size, json_patch.MAX_OPERATIONS))]


JSON: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "insert": lambda n: ({"x": [0] * 40 * n}, operations(n, {"op": "add", "path": "/x/0"})),
    "insert in the middle": lambda n: ({"x": [0] * 40 * n}, operations(n, {"op": "add", "path": f"/x/{20 * n}"})),
    "remove": lambda n: ({"x": [0] * 40 * n}, operations(n, {"op": "remove", "path": "/x/0"})),
    "move": lambda n: ({"x": [0] * 40 * n}, operations(n, {"op": "move", "from": "/x/0", "path": "/x/-"})),
    "insert and test": lambda n: (
        {"x": [0] * 40 * n},
        operations(n, {"op": "add", "path": "/x/0"}, {"op": "test", "path": "/x/0"}),
    ),
    "insert and copy an element": lambda n: (
        {"x": [0] * 40 * n},
        operations(n, {"op": "add", "path": "/x/0"}, {"op": "copy", "from": "/x/0", "path": "/x/1"}),
    ),
    "in a list of lists": lambda n: ({"x": [[0] * 40 * n]}, operations(n, {"op": "add", "path": "/x/0/0"})),
    "tildes": lambda n: ({}, [{"op": "add", "path": "/" + "~" * 100 * n, "value": 1}]),
    "members": lambda n: ({}, [{"op": "add", "path": f"/a{i}", "value": 1} for i in range(min(n, 10_000))]),
}


@pytest.mark.parametrize("case", JSON)
def test_a_json_patch_is_linear(case: str) -> None:
    assert_linear(lambda given: json_patch.apply(*given), JSON[case])


def test_a_merge_patch_is_linear() -> None:
    assert_linear(
        lambda given: merge.apply(*given),
        lambda n: ({name: {} for name in names(n)}, dict.fromkeys(names(n, "b"), [{}] * 3)),
    )
