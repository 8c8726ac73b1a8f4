"""Sorting of collections whose size users choose, without keeping other threads from running.

Python's sort holds the interpreter's lock until it ends: a tenth of a second for the 260,000 keys of a map that has
3 MB, and three times as long for tuples. Sorted values take a tenth of that time, so only a shuffled map shows it.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Collection
from operator import itemgetter
from typing import Any, Final, TypeVar

from tetrapod.machinery.freeing import free_members

AT_ONCE: Final = 16_384
"""Values that are sorted without a pause if they have no key: 5 ms for texts."""
KEYED_AT_ONCE: Final = 4096
"""Values that are sorted by a key without a pause: 4 ms for path elements of lists, whose keys are tuples."""
_SAMPLED: Final = 16
"""Values of the sample for each part. Chosen at random, so that no order of the values makes a part large."""

T = TypeVar("T")


def sort_large(values: Collection[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """Return the values in a new sorted list, like `sorted(values, key=key)`.

    Many values are sorted in parts (sample sort), between which other threads can run.

    Args:
        values: the values.
        key: returns the sort key of a value; None sorts by the values themselves.
    """
    if len(values) <= (AT_ONCE if key is None else KEYED_AT_ONCE):
        return sorted(values, key=key)  # type: ignore[type-var, arg-type]
    if key is None:
        return _sorted_in_parts(values, None, AT_ONCE)
    keyed = [(key(value), value) for value in values]
    in_order = [value for _, value in _sorted_in_parts(keyed, itemgetter(0), KEYED_AT_ONCE)]
    free_members(keyed)
    return in_order


def _sorted_in_parts(values: Collection[Any], key: Callable[[Any], Any] | None, at_once: int) -> list[Any]:
    parts = len(values) // at_once + 1
    sample = sorted(random.sample([*values], _SAMPLED * parts), key=key)
    splitters = sample[_SAMPLED::_SAMPLED]
    if key is not None:
        splitters = [key(splitter) for splitter in splitters]
    buckets: list[list[Any]] = [[] for _ in range(parts)]
    for value in values:
        buckets[bisect(splitters, value if key is None else key(value))].append(value)
    return [value for bucket in buckets for value in sorted(bucket, key=key)]
