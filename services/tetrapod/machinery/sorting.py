"""Sorting of collections whose size users choose, without keeping other threads from running.

Python's sort holds the interpreter's lock until it ends: a tenth of a second for the 260,000 keys of a map that has
3 MB, and three times as long for tuples. Sorted values take a tenth of that time, so only a shuffled map shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import merge
from typing import Any, Final, TypeVar

AT_ONCE: Final = 8192
"""The most values that are sorted or merged at once: about 10 ms for tuples."""
_MERGED_AT_ONCE: Final = 8 * AT_ONCE
"""The most values whose sorted halves are merged by one sort, which recognizes them."""

T = TypeVar("T")


def sort_large(values: Collection[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """Return `sorted(values, key=key)`. Many values are sorted in parts, between which other threads can run."""
    if len(values) <= AT_ONCE:
        return sorted(values, key=key)  # type: ignore[type-var, arg-type]
    if key is None:
        return _sorted_in_parts(list(values))
    items = list(values)
    return [items[i] for _, i in _sorted_in_parts([(key(item), i) for i, item in enumerate(items)])]


def _sorted_in_parts(items: list[Any]) -> list[Any]:
    runs = [sorted(items[start : start + AT_ONCE]) for start in range(0, len(items), AT_ONCE)]
    while len(runs) > 1 and len(runs[0]) < _MERGED_AT_ONCE:
        runs = [_merged(runs[i : i + 2]) for i in range(0, len(runs), 2)]
    return runs[0] if len(runs) == 1 else _interleaved(runs)


def _merged(runs: list[list[Any]]) -> list[Any]:
    joined = [value for run in runs for value in run]
    joined.sort()
    return joined


def _interleaved(runs: list[list[Any]]) -> list[Any]:
    """Return one sorted list of several sorted ones, merged in a Python loop, during which other threads can run."""
    out = []
    for value in merge(*runs):
        out.append(value)  # noqa: PERF402  (list() would run in C)
    return out
