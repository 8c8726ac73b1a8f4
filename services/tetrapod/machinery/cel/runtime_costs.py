"""The actual costs of calls at run time.

`plan` looks up each call in three tables, in this order:
- by overload: cel-go ext/lists.go and ext/sets.go (trackers)
- by function: k8s.io/apiserver/pkg/cel/library/cost.go
- by overload: the defaults of cel-go interpreter/runtimecost.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Final, TypeAlias

from tetrapod.machinery.cel.errors import InternalError
from tetrapod.machinery.cel.overload_errors import ADDABLE, has
from tetrapod.machinery.cel.values import Fields, ObjectLike, Special, find, go_type, size_of

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
AUTHORIZATION_COST: Final = 350_000

Args: TypeAlias = Sequence[Any]
Cost: TypeAlias = int | Callable[[Args, Any], int]
"""A constant cost, or a function of the arguments and the result."""
_COMPARABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)


def cost_of(function: str, overload: str) -> Cost:
    """Return the cost of a call, to which the caller adds that of evaluating its arguments.

    It is a number, or a function that computes it from the values of the arguments and the result. It is 1 for a
    function that has no entry in the tables.

    Args:
        function: the name of the function.
        overload: the overload that the checker determined; "" if it determined several.
    """
    cost = _BY_TRACKER.get(overload)
    if cost is None:
        cost = _BY_FUNCTION.get(function)
    if cost is None:
        cost = _BY_OVERLOAD.get(overload if function not in ("_==_", "_!=_") else "equals")
    return 1 if cost is None else cost


def depends_on_result(cost: Cost) -> bool:
    """Return whether a cost is computed from the result of the call, and not only from its arguments."""
    return cost in (_output, _joined)


def tenth(size: float) -> int:
    """Return the cost of reading a string of `size` bytes or characters: a tenth, rounded up."""
    return ceil(size * 0.1)


def traversal(value: Any) -> int:
    """Return the cost of visiting everything in a value.

    Each scalar costs 1, and a string or bytes a tenth of its length in bytes, rounded down.

    Upstream: traversalCost.
    """
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, Fields):
        return sum(map(traversal, value.elements()))
    if isinstance(value, (dict, ObjectLike)):
        return sum(traversal(key) + traversal(find(value, key)) for key in value)
    return 1


def _first(args: Args, result: Any) -> int:
    return tenth(size_of(args[0]))


def _second(args: Args, result: Any) -> int:
    return tenth(size_of(args[1]))


def _first_twice(args: Args, result: Any) -> int:
    return ceil(size_of(args[0]) * 2 * 0.1)


def _selector(args: Args, result: Any) -> int:
    """Return the cost of a field or label selector.

    It is the cost of parsing its text, and of a requirement for every second character.

    Args:
        args: the values of receiver and arguments; the selector's text is the second.
        result: the value of the call, which is not used.
    """
    length = size_of(args[1])
    return LIST_COST + tenth(length) + ceil(ceil(length * 0.5) * (LIST_COST + STRUCT_COST))


def _pattern(args: Args, result: Any) -> int:
    return tenth(1.0 + size_of(args[0])) * ceil(size_of(args[1]) * 0.25)


def _ip(args: Args, result: Any) -> int:
    return 1 if isinstance(args[0], Special) else _first(args, result)


def _contains_ip(args: Args, result: Any) -> int:
    cost = ceil(2 * size_of(args[0]) * 0.1)
    return cost + _second(args, result) if isinstance(args[1], str) else cost


def _contains_cidr(args: Args, result: Any) -> int:
    size = size_of(args[0])
    cost = ceil(2 * size * 0.1) + tenth(size) + 1
    return cost + _second(args, result) if isinstance(args[1], str) else cost


def _validate(args: Args, result: Any) -> int:
    regex = getattr(args[0], "regex_size", 0)
    return tenth(1.0 + size_of(args[1])) * ceil(regex * 0.25)


def _equality(args: Args, result: Any) -> int:
    if isinstance(args[0], Special):
        return 1
    return _smaller(args, result)


def _smaller(args: Args, result: Any) -> int:
    return tenth(min(size_of(args[0]), size_of(args[1])))


def _sum(args: Args, result: Any) -> int:
    return tenth(size_of(args[0]) + size_of(args[1]))


def _product(args: Args, result: Any) -> int:
    return _first(args, result) * _second(args, result)


def _output(args: Args, result: Any) -> int:
    return size_of(result) + 1 + LIST_COST


def _joined(args: Args, result: Any) -> int:
    return ceil(size_of(result) * 2 * 0.1)


def _flatten(args: Args, result: Any) -> int:
    """Return the cost of `flatten`.

    Args:
        args: the values of receiver and arguments: the list, and the depth unless it is left out.
        result: the value of the call, which is not used.

    Raises:
        InternalError: the depth is not an int. Upstream panics.
    """
    if len(args) == 2 and not isinstance(args[1], int):
        raise InternalError(f"interface conversion: ref.Val is {go_type(args[1])}, not types.Int")
    depth = float(args[1]) if len(args) == 2 else 1.0
    return int(size_of(args[0]) * (depth if depth >= 0 else 1.0)) + 1 + LIST_COST


def self_compare(listed: Any) -> int:
    """Return the cost of comparing all elements of a list with each other.

    Args:
        listed: the value of the argument, which must be a list.

    Raises:
        InternalError: the argument is not a list. Upstream converts it without a check, which panics.
    """
    if not isinstance(listed, list):
        missing = "Contains" if has(ADDABLE, listed) else "Add"
        raise InternalError(f"interface conversion: {go_type(listed)} is not traits.Lister: missing method {missing}")
    size = size_of(listed)
    if size == 0:
        return 1 + LIST_COST
    factor = 2.1 if isinstance(listed[0], (str, bytes)) else 2.0
    return int(float(size * size) * factor) + 1 + LIST_COST


def _sets(factor: int) -> Cost:
    return lambda args, result: 1 + size_of(args[0]) * size_of(args[1]) * factor


_BY_TRACKER: Final[Mapping[str, Cost]] = {
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": lambda args, result: self_compare(args[0]),
    **{f"list_{name}_sort": lambda args, result: self_compare(args[0]) for name in _COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": lambda args, result: self_compare(args[1]) for name in _COMPARABLE},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}

_BY_FUNCTION: Final[Mapping[str, Cost]] = {
    "check": AUTHORIZATION_COST,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), lambda args, result: traversal(args[0])
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _first),
    **dict.fromkeys(("replace", "split"), _first_twice),
    "join": _joined,
    **dict.fromkeys(("find", "findAll"), _pattern),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "ip": _ip,
    "ip.isCanonical": _first_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equality,
}
"""Functions that are in none of the tables cost 1."""

_BY_OVERLOAD: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _second),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _first),
    "in_list": lambda args, result: size_of(args[1]),
    **dict.fromkeys(("less_string", "greater_string", "less_equals_string", "greater_equals_string"), _smaller),
    **dict.fromkeys(("less_bytes", "greater_bytes", "less_equals_bytes", "greater_equals_bytes", "equals"), _smaller),
    **dict.fromkeys(("add_string", "add_bytes"), _sum),
    **dict.fromkeys(("matches", "matches_string"), _pattern),
    "contains_string": _product,
}
