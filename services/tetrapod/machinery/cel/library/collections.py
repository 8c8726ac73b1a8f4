"""Functions of lists, sets and maps. Upstream: cel-go ext/lists.go, ext/sets.go, ext/comprehensions.go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.library.operators import compared, same
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.limits import PER_CALL_LIMIT
from tetrapod.machinery.cel.overload_errors import COMPARABLE
from tetrapod.machinery.cel.runtime_costs import self_compare
from tetrapod.machinery.cel.values import ObjectLike, find, shown, type_of_value

_MAX_RANGE: Final = 1_000_000
_NUMBER_SECONDS: Final = 5e-8
_COMPARISON_SECONDS: Final = 1e-6
"""The time of comparing two simple elements."""


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    prefix = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{prefix}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{prefix}, start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"{prefix}, list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    result: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth:
            result += _flatten(value, depth - 1)
        else:
            result.append(value)
        if len(result) > PER_CALL_LIMIT:
            raise CostLimitExceeded
    return result


def _range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    if count > _MAX_RANGE:
        raise EvaluationError(f"lists.range: size {count} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(count))


def _bound(cost: int) -> None:
    """Raise CostLimitExceeded for an operation whose cost exceeds the limit of one evaluation, before it begins."""
    if cost > PER_CALL_LIMIT:
        raise CostLimitExceeded


def _distinct(values: list[Any]) -> list[Any]:
    _bound(self_compare(values))
    result: list[Any] = []
    for value in values:
        if not any(same(value, other) for other in result):
            result.append(value)
    return result


def _sort(values: list[Any]) -> list[Any]:
    return _sort_by(values, values)


def _sort_by(values: list[Any], keys: list[Any]) -> list[Any]:
    if len(values) != len(keys):
        text = "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
        raise EvaluationError(f"{text} {len(values)} and {len(keys)} elements respectively")
    _bound(self_compare(keys))
    if keys and keys[0].__class__ not in COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    if any(type_of_value(key) != type_of_value(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")

    def by_keys(i: int, j: int) -> int:
        return compared(keys[i], keys[j])

    return [values[i] for i in sorted(range(len(keys)), key=cmp_to_key(by_keys))]


def _contains(values: list[Any], others: list[Any]) -> bool:
    _bound(len(values) * len(others))
    return all(any(same(value, other) for value in values) for other in others)


def _intersects(values: list[Any], others: list[Any]) -> bool:
    _bound(len(values) * len(others))
    return any(same(other, value) for value in values for other in others)


def _insert(target: Any, key: Any, value: Any) -> dict[Any, Any]:
    result = {k: find(target, k) for k in target}
    if key in result:
        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    result[key] = value
    return result


def _insert_all(target: Any, others: Any) -> Any:
    for key in others:
        target = _insert(target, key, find(others, key))
    return target


def _pairs(values: Sequence[Any]) -> float:
    """Estimate the time of comparing each element of the first list with each of the last, which may be the same."""
    first, last = values[0], values[-1]
    if not isinstance(first, list) or not isinstance(last, list):
        return 0.0
    return len(first) * len(last) * _COMPARISON_SECONDS


def _range_seconds(values: Sequence[Any]) -> float:
    return values[0] * _NUMBER_SECONDS if isinstance(values[0], int) else 0.0


SECONDS: Final[Mapping[str, Callable[[Sequence[Any]], float]]] = {
    **dict.fromkeys(("distinct", "sets.contains", "sets.intersects", "sets.equivalent"), _pairs),
    "lists.range": _range_seconds,
}
"""The functions that may take longer than their cost says, each with the estimate of its time in seconds."""

FUNCTIONS: Final[Functions] = {
    "slice": [((list, int, int), _slice)],
    "flatten": [((list,), _flatten), ((list, int), _flatten)],
    "lists.range": [((int,), _range)],
    "distinct": [((list,), _distinct)],
    "sort": [((list,), _sort)],
    "@sortByAssociatedKeys": [((list, list), _sort_by)],
    "reverse": [((list,), lambda values: values[::-1])],
    "sets.contains": [((list, list), _contains)],
    "sets.intersects": [((list, list), _intersects)],
    "sets.equivalent": [((list, list), lambda a, b: _contains(a, b) and _contains(b, a))],
    "cel.@mapInsert": [
        ((dict, object, object), _insert),
        ((ObjectLike, object, object), _insert),
        ((dict, dict), _insert_all),
    ],
}
