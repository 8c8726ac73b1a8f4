"""Functions of quantities. Upstream: apiserver/pkg/cel/library/quantity.go."""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.machinery import quantity
from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import Special


class Quantity(Special):
    """A quantity: the value of `quantity('1.5Gi')`.

    Args:
        amount: the quantity.
        scale: the power of ten that upstream's int64Amount stores beside an integer (`100m` is 100 and -3); None if
            upstream stores a decimal instead. Only quantities with a scale of at least 0 are integers for `isInteger`.
    """

    cel_type = types.object_type("kubernetes.Quantity")

    def __init__(self, amount: quantity.Quantity, scale: int | None = 0) -> None:
        self.amount = amount
        self.scale = scale

    def equals(self, other: Any) -> bool:
        return isinstance(other, Quantity) and self.amount.cmp(other.amount) == 0


def _parse(text: str) -> Quantity:
    try:
        return Quantity(quantity.Quantity.parse(text), _scale(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.Quantity.parse(text)
    except ValueError:
        return False
    return True


def _as_integer(value: Quantity) -> int:
    number = _integer(value)
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _integer(value: Quantity) -> int | None:
    return None if value.scale is None or value.scale < 0 else value.amount.as_int64()


def _as_float(value: Quantity) -> float:
    """Return a quantity as a float, with upstream's rounding.

    The result is a whole number times a power of ten, so 0.3 is 0.30000000000000004.

    Upstream: apimachinery/pkg/api/resource/quantity.go, AsApproximateFloat64.
    """
    scale = _NANO if value.scale is None else value.scale
    try:
        counted = float(value.amount.nano // 10 ** (scale - _NANO))
    except OverflowError:
        return float("inf") * value.amount.sign
    return counted * float(f"1e{scale}")


_TEXT: Final = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DIGITS: Final = 18
_NANO: Final = -9


def _scale(text: str) -> int | None:
    """Return the scale that upstream's int64Amount has after parsing a valid quantity (see `Quantity`).

    The result is None if upstream stores a decimal instead.

    Upstream: apimachinery/pkg/api/resource/quantity.go, the fast path of ParseQuantity.
    """
    parsed = _TEXT.fullmatch(text)
    assert parsed is not None
    whole, fraction, suffix = parsed[1] or "0", parsed[2] or "", parsed[3]
    if suffix in _BINARY:
        spare_digits = 15 - len(whole) - int(_BINARY[suffix] * 3 / 10) - 1
        return 0 if not fraction and spare_digits >= 0 and int(whole) << _BINARY[suffix] < 1 << 63 else None
    scale = (_SUFFIXES[suffix] if suffix in _SUFFIXES else int(suffix[1:])) - len(fraction)
    return scale if len(whole) + len(fraction) <= _DIGITS and scale >= _NANO else None


def _sum(a: Quantity, b: Quantity, amount: quantity.Quantity) -> Quantity:
    """Return the sum or difference of two quantities with the scale that upstream gives it.

    The scale is the finer of both; that of a zero is ignored. It is None if an operand is stored as a decimal or the
    result overflows.

    Args:
        a: the first operand.
        b: the second operand.
        amount: the sum or difference.

    Upstream: apimachinery/pkg/api/resource/amount.go, int64Amount.Add.
    """
    if a.scale is None or b.scale is None:
        return Quantity(amount, None)
    scale = a.scale if b.amount.is_zero else b.scale if a.amount.is_zero else min(a.scale, b.scale)
    counted = amount.nano // 10 ** (scale + 9) if scale >= _NANO else 0
    return Quantity(amount, scale if -(1 << 63) <= counted < 1 << 63 else None)


def _int(value: int) -> Quantity:
    return Quantity(quantity.Quantity.from_int(value))


FUNCTIONS: Final[Functions] = {
    "quantity": [((str,), _parse)],
    "isQuantity": [((str,), _is_quantity)],
    "sign": [((Quantity,), lambda q: q.amount.sign)],
    "isGreaterThan": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount) > 0)],
    "isLessThan": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount) < 0)],
    "compareTo": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount))],
    "asApproximateFloat": [((Quantity,), _as_float)],
    "asInteger": [((Quantity,), _as_integer)],
    "isInteger": [((Quantity,), lambda q: _integer(q) is not None)],
    "add": [
        ((Quantity, Quantity), lambda a, b: _sum(a, b, a.amount + b.amount)),
        ((Quantity, int), lambda a, b: _sum(a, _int(b), a.amount + _int(b).amount)),
    ],
    "sub": [
        ((Quantity, Quantity), lambda a, b: _sum(a, b, a.amount - b.amount)),
        ((Quantity, int), lambda a, b: _sum(a, _int(b), a.amount - _int(b).amount)),
    ],
}
