"""`free_large` frees objects that are not referenced elsewhere, and does not change the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tetrapod.machinery.freeing import free_large, free_members


def test_shared_parts_are_left_as_they_are() -> None:
    shared = {"a": [1, {"b": 2}]}
    values: list[Any] = [{"x": shared, "y": [shared, {"z": 1}]}]
    free_large(values)
    assert not values
    assert shared == {"a": [1, {"b": 2}]}


def test_a_shared_object_is_left_as_it_is() -> None:
    kept = {"a": [{"b": 1}]}
    free_large([kept])
    assert kept == {"a": [{"b": 1}]}


def test_large_flat_and_nested_objects_are_freed() -> None:
    nested: Any = {}
    for _ in range(10_000):
        nested = [nested]
    values = [{"flat": [{} for _ in range(10_000)], "nested": nested}]
    del nested
    free_large(values)
    assert not values


@pytest.mark.parametrize("kind", [list, set, dict.fromkeys])
def test_many_members_are_freed_and_few_are_left(kind: Callable[[range], Any]) -> None:
    many, few = kind(range(10_000)), kind(range(100))
    free_members(many)
    free_members(few)
    assert not many
    assert len(few) == 100
