"""Quantities. Upstream: apiserver/pkg/cel/library/quantity.go."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery import quantity
from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.registry import Functions
from tetrapod.machinery.cel.values import Special


class Quantity(Special):
    cel_type = types.object_type("kubernetes.Quantity")

    def __init__(self, amount: quantity.Quantity) -> None:
        self.amount = amount

    def equals(self, other: Any) -> bool:
        return isinstance(other, Quantity) and self.amount.cmp(other.amount) == 0


def _parse(text: str) -> Quantity:
    try:
        return Quantity(quantity.Quantity.parse(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.Quantity.parse(text)
    except ValueError:
        return False
    return True


def _as_integer(value: Quantity) -> int:
    number = value.amount.as_int64()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _int(value: int) -> quantity.Quantity:
    return quantity.Quantity.from_int(value)


FUNCTIONS: Final[Functions] = {
    "quantity": [((str,), _parse)],
    "isQuantity": [((str,), _is_quantity)],
    "sign": [((Quantity,), lambda q: q.amount.sign)],
    "isGreaterThan": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount) > 0)],
    "isLessThan": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount) < 0)],
    "compareTo": [((Quantity, Quantity), lambda a, b: a.amount.cmp(b.amount))],
    "asApproximateFloat": [((Quantity,), lambda q: q.amount.as_float())],
    "asInteger": [((Quantity,), _as_integer)],
    "isInteger": [((Quantity,), lambda q: q.amount.as_int64() is not None)],
    "add": [
        ((Quantity, Quantity), lambda a, b: Quantity(a.amount + b.amount)),
        ((Quantity, int), lambda a, b: Quantity(a.amount + _int(b))),
    ],
    "sub": [
        ((Quantity, Quantity), lambda a, b: Quantity(a.amount - b.amount)),
        ((Quantity, int), lambda a, b: Quantity(a.amount - _int(b))),
    ],
}
