"""Ranges of sizes and costs, with saturating unsigned 64-bit arithmetic.

Upstream: cel-go checker/cost.go, SizeEstimate and CostEstimate.
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

MAX: Final = (1 << 64) - 1
_LIMIT: Final = float(1 << 64)


def add(x: int, y: int) -> int:
    """Return the sum of two numbers, at most `MAX`."""
    return min(x + y, MAX)


def multiply(x: int, y: int) -> int:
    """Return the product of two numbers, at most `MAX`."""
    return min(x * y, MAX)


def scale(x: int, factor: float) -> int:
    """Return a number multiplied by a factor, rounded up and at most `MAX`."""
    number = float(x)
    if number > 0 and factor > 0 and number > _LIMIT / factor:
        return MAX
    product = ceil(number * factor)
    return MAX if product >= 1 << 64 else product


class Range(NamedTuple):
    """A range of sizes or costs, both ends included."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        """Return the range of the sums of a value in this range and one in the other."""
        return Range(add(self.min, other.min), add(self.max, other.max))

    def times(self, other: Range) -> Range:
        """Return the range of the products of a value in this range and one in the other."""
        return Range(multiply(self.min, other.min), multiply(self.max, other.max))

    def scaled(self, factor: float) -> Range:
        """Return the range with both ends multiplied by a factor and rounded up."""
        return Range(scale(self.min, factor), scale(self.max, factor))

    def union(self, other: Range) -> Range:
        """Return the smallest range that contains both ranges."""
        return Range(min(self.min, other.min), max(self.max, other.max))


def fixed(value: int) -> Range:
    """Return the range that contains only one value."""
    return Range(value, value)


ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX)
EMPTY: Final = Range(MAX, 0)
"""The empty range: its union with another range is the other range."""
