"""Kubernetes' list functions: isSorted, sum, min, max, indexOf, lastIndexOf, includes.

Upstream: apiserver/pkg/cel/library/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.operators import add, compared, same
from tetrapod.machinery.cel.library.signatures import Function, Functions, list_of
from tetrapod.machinery.cel.overload_errors import COMPARABLE
from tetrapod.machinery.cel.values import Duration, Uint


def _is_sorted(values: list[Any]) -> bool:
    return not any(compared(a, b) > 0 for a, b in pairwise(values))


def _sum(values: list[Any]) -> Any:
    total = values[0] if values else 0
    for value in values[1:]:
        total = add(total, value)
    return total


def summing(run: Function, overload: str) -> Function:
    """Return `sum` with the right result for an empty list: the zero of the type that the checker determined.

    Args:
        run: the function `sum`, which returns 0 for every empty list.
        overload: the overload that the checker determined, such as `list_double_sum`.
    """
    kind = overload.rpartition("_")[2]
    zero = {"double": 0.0, "uint": Uint(0), "duration": Duration(0)}.get(kind, 0)
    return lambda values: zero if values == [] else run(values)


def _best(name: str, worse: int) -> Callable[[list[Any]], Any]:
    """Return the function `min` or `max`, which raises `EvaluationError` for an empty list.

    Args:
        name: its name, for errors.
        worse: the result of `compared(best, value)` at which `value` replaces the best so far.
    """

    def run(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if compared(best, value) == worse:
                best = value
        return best

    return run


def _index_of(values: list[Any], item: Any) -> int:
    return next((i for i, value in enumerate(values) if same(value, item)), -1)


def _last_index_of(values: list[Any], item: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if same(values[i], item)), -1)


def _includes(value: Any, item: Any) -> bool:
    """Return whether a list has an element, or whether a value of another type equals it."""
    return any(same(element, item) for element in value) if isinstance(value, list) else same(value, item)


_ORDERED: Final = list_of(*COMPARABLE)

FUNCTIONS: Final[Functions] = {
    "isSorted": [((_ORDERED,), _is_sorted)],
    "sum": [((list_of(int, float, Uint, Duration),), _sum)],
    "min": [((_ORDERED,), _best("min", 1))],
    "max": [((_ORDERED,), _best("max", -1))],
    "indexOf": [((list, object), _index_of)],
    "lastIndexOf": [((list, object), _last_index_of)],
    "includes": [((object, object), _includes)],
}
