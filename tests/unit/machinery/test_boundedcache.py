"""Tests of caches that are bounded by count and by bytes."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.boundedcache import BoundedCache, bounded, weigh

_COUNT, _SIZE, _LARGEST = 20, 4000, 600
_keys = st.integers(0, 60).map(lambda number: str(number) * (1 + number % 9 * 12))
_steps = st.lists(st.tuples(st.sampled_from(["keep", "recall", "get", "discard"]), _keys), max_size=200)


@given(_steps)
def test_neither_bound_is_ever_exceeded_and_no_value_is_wrong(steps: list[tuple[str, str]]) -> None:
    cache: BoundedCache[str, str] = BoundedCache(count=_COUNT, size=_SIZE, largest=_LARGEST)
    for step, key in steps:
        if step == "keep":
            assert cache.keep(key, f"value of {key}") == f"value of {key}"
        elif step == "discard":
            cache.discard(key)
            assert cache.recall(key) is None
        else:
            assert (cache.recall(key) if step == "recall" else cache.get(key)) in (None, f"value of {key}")
        assert cache.count <= _COUNT
        assert cache.size <= _SIZE
        stored = {**cache._old, **cache}
        assert sum(weigh(entry) for entry in stored.items()) <= cache.size
        assert all(weigh(entry) <= _LARGEST for entry in stored.items())


@given(st.lists(_keys, max_size=200))
def test_a_decorated_function_returns_what_it_would_return_without(arguments: list[str]) -> None:
    @bounded(count=_COUNT, size=_SIZE, largest=_LARGEST)
    def doubled(text: str) -> str:
        return text + text

    assert [doubled(text) for text in arguments] == [text + text for text in arguments]


def test_entries_in_use_survive_a_flood_of_others() -> None:
    calls: list[str] = []

    @bounded(count=100, size=1 << 20)
    def recorded(text: str) -> str | None:
        calls.append(text)
        return None

    for number in range(1000):
        recorded("in use")
        recorded(f"flood {number}")
    assert calls.count("in use") == 1


def test_an_entry_above_the_largest_size_is_not_stored() -> None:
    cache: BoundedCache[str, int] = BoundedCache(count=10, size=1 << 20, largest=1000)
    cache.keep("a" * 2000, 1)
    assert (cache.count, cache.size) == (0, 0)
    cache.keep("a", 1)
    cache.clear()
    assert (cache.count, cache.size, cache.recall("a")) == (0, 0, None)


def test_exceptions_are_not_stored() -> None:
    calls: list[str] = []

    @bounded(count=10, size=1 << 10)
    def failing(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            failing("a")
    assert calls == ["a", "a"]


@pytest.mark.parametrize(
    "thing", ["text", b"bytes", ("a", b"b"), ["a", ("b",)], frozenset({"a"}), {"key": ["value"]}, 1.5, None], ids=repr
)
def test_containers_weigh_more_than_what_is_in_them(thing: Any) -> None:
    inner = thing.items() if isinstance(thing, dict) else thing if isinstance(thing, tuple | list | frozenset) else ()
    assert weigh(thing) >= sys.getsizeof(thing) + sum(weigh(part) for part in inner if not isinstance(thing, dict))
