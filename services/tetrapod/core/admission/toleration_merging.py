"""Merging and comparison of tolerations, in time that grows with their number. Upstream: pkg/util/tolerations.

Upstream compares every toleration with every other one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from tetrapod.machinery.freeing import free_large, free_members
from tetrapod.machinery.gvk import Object

_EVERY_KEY: Final = ""
_Class: TypeAlias = tuple[str, str, str | None]
"""Key, effect, and value; the value is None for the operator Exists. In one class, a toleration covers those
with fewer seconds.
"""


def merged(first: list[Object], second: list[Object]) -> list[Object]:
    """Return the tolerations of both lists in a new list, in order, without redundant ones.

    A toleration is redundant if another one covers it: the other tolerates the same taints for at least as long. Of
    equal tolerations, the first is kept.
    """
    tolerations = [*first, *second]
    later = _Coverage()
    covered_later: list[bool] = []
    for toleration in reversed(tolerations):
        covered_later.append(later.covers(toleration, except_equal=True))
        later.add(toleration)
    covered_later.reverse()
    kept, earlier = list[Object](), _Coverage()
    for toleration, redundant in zip(tolerations, covered_later, strict=True):
        if not redundant and not earlier.covers(toleration):
            kept.append(toleration)
            earlier.add(toleration)
    later.free()
    earlier.free()
    return kept


def all_covered(tolerations: list[Object], allowed: list[Object]) -> bool:
    """Return whether each toleration is covered by one in `allowed`, which tolerates at least the same taints."""
    coverage = _Coverage(allowed)
    return all(map(coverage.covers, tolerations))


class _Coverage:
    """A set of tolerations that answers whether one of them covers another toleration."""

    def __init__(self, tolerations: Iterable[Object] = ()) -> None:
        self._equal: set[frozenset[tuple[str, Any]]] = set()
        self._longest: dict[_Class, list[Object]] = {}
        """The toleration with the most seconds of each class and, if there is one, the longest that differs from it."""
        for toleration in tolerations:
            self.add(toleration)

    def add(self, toleration: Object) -> None:
        self._equal.add(frozenset(toleration.items()))
        operator = toleration.get("operator") or ""
        if operator not in ("", "Equal", "Exists"):
            return
        value = None if operator == "Exists" else toleration.get("value") or ""
        longest = self._longest.setdefault((_key(toleration), _effect(toleration), value), [])
        if toleration not in longest:
            longest.append(toleration)
            longest.sort(key=_seconds, reverse=True)
            del longest[2:]

    def covers(self, toleration: Object, *, except_equal: bool = False) -> bool:
        """Return whether one of the tolerations covers this one.

        Args:
            except_equal: whether only tolerations count that differ from this one.
        """
        if not except_equal and frozenset(toleration.items()) in self._equal:
            return True
        seconds = toleration.get("tolerationSeconds")
        needed = math.inf if seconds is None else seconds
        return any(
            _seconds(wide) >= needed or _effect(wide) != "NoExecute"
            for kind in _wider(toleration)
            for wide in self._longest.get(kind, ())
            if not except_equal or wide != toleration
        )

    def free(self) -> None:
        """Deallocate the set part by part, so that other threads can run in between."""
        longest: list[Any] = [self._longest]
        self._longest = {}
        free_large(longest)
        free_members(self._equal)


def _wider(toleration: Object) -> Iterator[_Class]:
    """Yield the classes whose tolerations cover this one if they last long enough."""
    key = _key(toleration)
    for effect in {"", _effect(toleration)}:
        for wide_key in {_EVERY_KEY, key}:
            yield wide_key, effect, None
        if toleration.get("operator") == "Equal":
            yield key, effect, toleration.get("value") or ""


def _key(toleration: Object) -> str:
    return toleration.get("key") or ""


def _effect(toleration: Object) -> str:
    return toleration.get("effect") or ""


def _seconds(toleration: Object) -> float:
    """Return tolerationSeconds; infinity if it is unset."""
    seconds: int | None = toleration.get("tolerationSeconds")
    return math.inf if seconds is None else seconds
