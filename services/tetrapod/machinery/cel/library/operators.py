"""Arithmetic, comparison and membership operators. Upstream: cel-go common/types."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, nan
from operator import ge, gt, le, lt
from typing import Any, Final

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.overload_errors import overload_error
from tetrapod.machinery.cel.time import checked_duration, checked_timestamp
from tetrapod.machinery.cel.values import (
    CorrelatedList,
    Duration,
    Fields,
    ObjectLike,
    Timestamp,
    Uint,
    equal,
    find,
    no_such_overload,
)

MAX_ELEMENTS: Final = 5_000_000
"""The longest concatenated list. Upstream shares the parts of a concatenation, while they are copied here."""
_INT64: Final = 1 << 63
_UINT64: Final = 1 << 64
_NUMBERS: Final = frozenset({int, Uint, float})
_ORDERED: Final = frozenset({str, bytes, bool})


def checked_int(value: int) -> int:
    """Return an integer as it is.

    Raises:
        EvaluationError: it does not fit into int64.
    """
    if -_INT64 <= value < _INT64:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    """Return an integer as a Uint.

    Raises:
        EvaluationError: it does not fit into uint64.
    """
    if 0 <= value < _UINT64:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def add(a: Any, b: Any) -> Any:
    """Return the value of `a + b`, for numbers, strings, bytes, lists, durations and timestamps.

    Raises:
        EvaluationError: the sum overflows, or the operands are of other types or do not match.
        CostLimitExceeded: a concatenated list has more than MAX_ELEMENTS elements.
    """
    ka, kb = a.__class__, b.__class__
    if ka is kb:
        if ka is int:
            return checked_int(a + b)
        if ka in (str, float, bytes):
            return a + b
        if ka is Uint:
            return checked_uint(int(a) + int(b))
        if ka is Duration:
            return checked_duration(a.ns + b.ns)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) + len(b) > MAX_ELEMENTS:
            raise CostLimitExceeded
        return a.merged(b) if isinstance(a, CorrelatedList) else [*a, *b]
    if {ka, kb} == {Duration, Timestamp}:
        return checked_timestamp(a.ns + b.ns)
    raise overload_error("_+_", (a, b))


def subtract(a: Any, b: Any) -> Any:
    """Return the value of `a - b`, for numbers, durations and timestamps.

    Raises:
        EvaluationError: the difference overflows, or the operands are of other types or do not match.
    """
    ka, kb = a.__class__, b.__class__
    if ka is kb:
        if ka is int:
            return checked_int(a - b)
        if ka is float:
            return a - b
        if ka is Uint:
            return checked_uint(int(a) - int(b))
        if ka in (Duration, Timestamp):
            return checked_duration(a.ns - b.ns)
    if ka is Timestamp and kb is Duration:
        return checked_timestamp(a.ns - b.ns)
    raise overload_error("_-_", (a, b))


def multiply(a: Any, b: Any) -> Any:
    """Return the value of `a * b`, for two numbers of the same type.

    Raises:
        EvaluationError: the product overflows, or the operands are of other types.
    """
    kind = a.__class__
    if kind is not b.__class__ or kind not in _NUMBERS:
        raise overload_error("_*_", (a, b))
    if kind is int:
        return checked_int(a * b)
    return a * b if kind is float else checked_uint(int(a) * int(b))


def divide(a: Any, b: Any) -> Any:
    """Return the value of `a / b`, for two numbers of the same type. Integers are truncated toward zero.

    Raises:
        EvaluationError: an integer is divided by zero, the quotient overflows, or the operands are of other types.
    """
    kind = a.__class__
    if kind is not b.__class__ or kind not in _NUMBERS:
        raise overload_error("_/_", (a, b))
    if kind is float:
        if b == 0.0:
            return nan if a == 0.0 or isnan(a) else (inf if (a > 0) == (str(b)[0] != "-") else -inf)
        return a / b
    if b == 0:
        raise EvaluationError("division by zero")
    if kind is Uint:
        return Uint(int(a) // int(b))
    quotient = abs(a) // abs(b)
    return checked_int(quotient if (a < 0) == (b < 0) else -quotient)


def modulo(a: Any, b: Any) -> Any:
    """Return the value of `a % b`, for two integers of the same type. It has the sign of `a`.

    Raises:
        EvaluationError: `b` is zero, the division overflows, or the operands are of other types.
    """
    kind = a.__class__
    if kind is not b.__class__ or kind not in (int, Uint):
        raise overload_error("_%_", (a, b))
    if b == 0:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(int(a) % int(b))
    if a == -_INT64 and b == -1:
        raise EvaluationError("integer overflow")
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def negate(a: Any) -> Any:
    """Return the value of `-a`, for an int, a double or a duration.

    Raises:
        EvaluationError: the result overflows, or the operand is of another type.
    """
    if a.__class__ is int:
        return checked_int(-a)
    if a.__class__ is float:
        return -a
    if a.__class__ is Duration:
        return checked_duration(-a.ns)
    raise overload_error("-_", (a,))


def _not(a: Any) -> bool:
    if a is True:
        return False
    if a is False:
        return True
    raise no_such_overload()


def _comparison(name: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def run(a: Any, b: Any) -> bool:
        ka, kb = a.__class__, b.__class__
        if ka is kb and ka in _ORDERED:
            return compare(a, b)
        if ka in _NUMBERS and kb in _NUMBERS:
            if isnan(a) or isnan(b):
                raise EvaluationError("NaN values cannot be ordered")
            return compare(a, b)
        if ka is kb and ka in (Timestamp, Duration):
            return compare(a.ns, b.ns)
        raise overload_error(name, (a, b))

    return run


less: Final = _comparison("_<_", lt)
greater: Final = _comparison("_>_", gt)


def compared(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 if `a` is less than, equal to or greater than `b`.

    The result is 0 for values that cannot be ordered, because upstream treats the error as neither less nor greater.
    """
    try:
        return -1 if less(a, b) else int(greater(a, b))
    except EvaluationError:
        return 0


def same(a: Any, b: Any) -> bool:
    """Return whether `a == b`; False for values that `==` cannot compare, for which that raises an error."""
    try:
        return equal(a, b)
    except EvaluationError:
        return False


def contained(item: Any, holder: Any) -> bool:
    """Return the value of `item in holder`: whether a list has an element, or a map a key, that equals `item`.

    Raises:
        EvaluationError: `holder` is neither a list nor a map.
    """
    if isinstance(holder, list):
        return any(same(element, item) for element in holder)
    if not isinstance(holder, (dict, ObjectLike)) or isinstance(holder, Fields):
        raise no_such_overload()
    if not isinstance(item, (str, int, float)):
        return False  # maps have no keys of other types
    try:
        find(holder, item)
    except KeyError:
        return False
    return True


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": _not,
    "_==_": equal,
    "_!=_": lambda a, b: not same(a, b),
    "_<_": less,
    "_>_": greater,
    "_<=_": _comparison("_<=_", le),
    "_>=_": _comparison("_>=_", ge),
    "@in": contained,
    "@not_strictly_false": lambda value: value is not False,
}
