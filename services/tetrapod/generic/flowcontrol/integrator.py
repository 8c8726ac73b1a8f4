"""`Integrator`: the time-weighted mean and standard deviation of a number.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/integrator.go
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Results(NamedTuple):
    """The statistics of a number over one period.

    Attributes:
        duration: the length of the period in seconds.
        average: the average, weighted by time; 0 if no time has passed.
        deviation: the standard deviation, weighted by time.
        highest: the highest value.
    """

    duration: float
    average: float
    deviation: float
    highest: float


class Integrator:
    """Computes the time-weighted mean and deviation of a number from its values and their durations, in any order."""

    def __init__(self) -> None:
        self._highest = 0.0
        self._elapsed = self._sum = self._squares = 0.0

    def add(self, value: float, seconds: float) -> None:
        """Add a value and the seconds that it lasted, which may be 0. Then it only counts for the maximum."""
        self._highest = max(self._highest, value)
        self._elapsed += seconds
        self._sum += value * seconds
        self._squares += value * value * seconds

    def reset(self) -> Results:
        """Return the statistics since the last reset, and start a new period."""
        results = self._results()
        self._elapsed = self._sum = self._squares = self._highest = 0.0
        return results

    def _results(self) -> Results:
        if self._elapsed <= 0:
            return Results(0, 0, 0, self._highest)
        average = self._sum / self._elapsed
        variance = max(0.0, self._squares / self._elapsed - average * average)
        return Results(self._elapsed, average, math.sqrt(variance), self._highest)
