"""The mean and the spread of a number over time (upstream: flowcontrol/fairqueuing/integrator.go)."""

from __future__ import annotations

import math
from typing import NamedTuple


class Results(NamedTuple):
    duration: float  # seconds
    average: float  # weighted by time; 0 where no time has passed
    deviation: float
    highest: float


class Integrator:
    """Told of times, in any order, and of what the number was for so long."""

    def __init__(self) -> None:
        self._highest = 0.0
        self._elapsed = self._sum = self._squares = 0.0

    def add(self, value: float, seconds: float) -> None:
        """It was `value` for `seconds`, which may be none."""
        self._highest = max(self._highest, value)
        self._elapsed += seconds
        self._sum += value * seconds
        self._squares += value * value * seconds

    def reset(self) -> Results:
        """What has been told; the next results begin there."""
        results = self._results()
        self._elapsed = self._sum = self._squares = self._highest = 0.0
        return results

    def _results(self) -> Results:
        if self._elapsed <= 0:
            return Results(0, 0, 0, self._highest)
        average = self._sum / self._elapsed
        variance = max(0.0, self._squares / self._elapsed - average * average)
        return Results(self._elapsed, average, math.sqrt(variance), self._highest)
