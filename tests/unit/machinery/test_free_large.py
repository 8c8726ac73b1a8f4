"""`free_large` frees objects that are not referenced elsewhere, and does not change the others."""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.freeing import free_large


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
