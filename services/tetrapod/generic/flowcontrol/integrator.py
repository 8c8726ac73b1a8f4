"""The mean and the spread of a number over time (upstream: flowcontrol/fairqueuing/integrator.go)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple


class Results(NamedTuple):
    duration: float  # seconds
    average: float  # weighted by time; 0 where no time has passed
    deviation: float
    highest: float


class Integrator:
    """Told from outside how the time passes, by `advance`, and by `reach` what the number has risen to."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._since = clock()
        self._value = self._highest = 0.0
        self._elapsed = self._sum = self._squares = 0.0

    def advance(self, now: float, value: float) -> None:
        """It has been `value` until now."""
        passed = now - self._since
        self._since = now
        self._value = value
        self._elapsed += passed
        self._sum += value * passed
        self._squares += value * value * passed

    def reach(self, value: float) -> None:
        self._highest = max(self._highest, value)

    def reset(self) -> Results:
        """What was until it was last advanced; the next results begin there."""
        results = self._results()
        self._elapsed = self._sum = self._squares = 0.0
        self._highest = self._value
        return results

    def _results(self) -> Results:
        if self._elapsed <= 0:
            return Results(0, 0, 0, self._highest)
        average = self._sum / self._elapsed
        variance = max(0.0, self._squares / self._elapsed - average * average)
        return Results(self._elapsed, average, math.sqrt(variance), self._highest)
