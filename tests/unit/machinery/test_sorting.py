"""Large collections are sorted in parts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tetrapod.machinery import sorting
from tetrapod.machinery.fieldmanager.pathelement import order
from tetrapod.machinery.sorting import sort_large

SIZES = (0, 1, sorting.KEYED_AT_ONCE + 1, sorting.AT_ONCE, sorting.AT_ONCE + 1, 100_000, 200_001)


@pytest.mark.parametrize("size", SIZES)
def test_the_result_is_that_of_sorted(size: int) -> None:
    values = [random.Random(size).randrange(1000) for _ in range(size)]
    assert sort_large(values) == sorted(values)
    pairs = [(value, i) for i, value in enumerate(values)]
    assert sort_large(pairs, key=lambda pair: pair[0]) == sorted(pairs, key=lambda pair: pair[0])


@pytest.mark.parametrize(
    ("key", "most"), [(None, sorting.AT_ONCE), (order, sorting.KEYED_AT_ONCE)], ids=["values", "path elements"]
)
def test_no_call_sorts_many_values(monkeypatch: pytest.MonkeyPatch, key: Any, most: int) -> None:
    sizes = []

    def recording(values: list[Any], **options: Any) -> Iterable[Any]:
        sizes.append(len(values))
        return sorted(values, **options)

    monkeypatch.setattr(sorting, "sorted", recording, raising=False)
    monkeypatch.setattr(sorting, "random", random.Random(0))
    values = [f'k:{{"name":"{i}"}}' for i in range(100_000)]
    random.Random(0).shuffle(values)
    assert sort_large(values, key) == sorted(values, key=key)
    assert max(sizes) <= 2 * most
