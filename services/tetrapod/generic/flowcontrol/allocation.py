"""The division of the server's seats among priority levels.

Each level has a target and bounds for its number of seats. It gets its target times a factor that is the same for all
levels, the proportion, or the bound if that is outside of the bounds. The sum of the seats grows with the proportion.
The proportion at which the sum is the total lies between two neighbouring bounds, so it is found by interpolation.
Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/conc_alloc.go, computeConcurrencyAllocation
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

_LEAST_TARGET: Final = 0.001
_EPSILON: Final = 1e-7


class Claim(NamedTuple):
    """The claim of a priority level to seats, in numbers of seats.

    Attributes:
        target: the number that it should get.
        lower: the least that it gets.
        upper: the most that it gets.
    """

    target: float
    lower: float
    upper: float


def round_seats(number: float) -> int:
    """Round a non-negative number to an integer, half up, as Go's math.Round does."""
    whole = math.floor(number)
    return whole + (number - whole >= 0.5)


def allocate(total: int, claims: Sequence[Claim]) -> tuple[list[float], float]:
    """Divide `total` seats among priority levels.

    Returns:
        The share of each claim in their order, which sum to `total`, and the proportion. A share is the target times
            the proportion, unless a bound prevents it.

    Raises:
        ValueError: a claim has a negative lower bound, or an upper bound or target below it; or `total` is not between
            the sums of the lower and of the upper bounds.
    """
    for claim in claims:
        if claim.lower < 0 or claim.upper < claim.lower or claim.target < claim.lower:
            raise ValueError(f"{claim} contradicts itself")
    low, high = sum(c.lower for c in claims), sum(c.upper for c in claims)
    if total < 0 or low - total > _EPSILON or total - high > _EPSILON:
        raise ValueError(f"{total} is not within {low} and {high}")
    if total == 0:
        return [0.0] * len(claims), 0.0
    targets = [max(c.target, _LEAST_TARGET) for c in claims]
    if low - total > -_EPSILON:
        return [c.lower for c in claims], min((c.lower / t for c, t in zip(claims, targets, strict=True)), default=0.0)
    if total - high > -_EPSILON:
        return [c.upper for c in claims], max(c.upper / t for c, t in zip(claims, targets, strict=True))
    fair = _proportion(total, claims, targets)
    return [min(c.upper, max(c.lower, fair * t)) for c, t in zip(claims, targets, strict=True)], fair


def _proportion(total: int, claims: Sequence[Claim], targets: Sequence[float]) -> float:
    pairs = list(zip(claims, targets, strict=True))
    bounds = sorted({b / t for c, t in pairs for b in (c.lower, c.upper)})

    def allotted(proportion: float) -> float:
        return sum(min(c.upper, max(c.lower, proportion * t)) for c, t in pairs)

    start = bounds[0]
    for end in bounds[1:]:
        reached = allotted(end)
        if reached >= total:
            allotted_at_start = allotted(start)
            return start + (end - start) * (total - allotted_at_start) / (reached - allotted_at_start)
        start = end
    return start
