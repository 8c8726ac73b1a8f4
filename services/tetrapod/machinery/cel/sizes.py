"""Ranges of sizes and costs in saturating unsigned arithmetic. Upstream: cel-go checker/cost.go (SizeEstimate, CostEstimate)."""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

MAX: Final = (1 << 64) - 1
_LIMIT: Final = float(1 << 64)


def add(x: int, y: int) -> int:
    return min(x + y, MAX)


def multiply(x: int, y: int) -> int:
    return min(x * y, MAX)


def scale(x: int, factor: float) -> int:
    """Rounded up."""
    number = float(x)
    if number > 0 and factor > 0 and number > _LIMIT / factor:
        return MAX
    product = ceil(number * factor)
    return MAX if product >= 1 << 64 else product


class Range(NamedTuple):
    """Of sizes or of costs."""

    min: int
    max: int

    def plus(self, other: Range) -> Range:
        return Range(add(self.min, other.min), add(self.max, other.max))

    def times(self, other: Range) -> Range:
        return Range(multiply(self.min, other.min), multiply(self.max, other.max))

    def scaled(self, factor: float) -> Range:
        return Range(scale(self.min, factor), scale(self.max, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.min, other.min), max(self.max, other.max))


def fixed(value: int) -> Range:
    return Range(value, value)


ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX)
EMPTY: Final = Range(MAX, 0)
"""Nothing yet: what it is united with remains."""
