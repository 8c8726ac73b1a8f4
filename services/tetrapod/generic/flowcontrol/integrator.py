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
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._value = 0.0
        self._highest = 0.0
        self._elapsed = self._sum = self._squares = 0.0

    def set(self, value: float) -> None:
        self._advance()
        self._value = value
        self._highest = max(self._highest, value)

    def reset(self) -> Results:
        """What was until now; the next results begin here."""
        self._advance()
        results = self._results()
        self._elapsed = self._sum = self._squares = 0.0
        self._highest = self._value
        return results

    def _advance(self) -> None:
        now = self._clock()
        passed = now - self._since
        self._since = now
        self._elapsed += passed
        self._sum += self._value * passed
        self._squares += self._value * self._value * passed

    def _results(self) -> Results:
        if self._elapsed <= 0:
            return Results(0, 0, 0, self._highest)
        average = self._sum / self._elapsed
        variance = max(0.0, self._squares / self._elapsed - average * average)
        return Results(self._elapsed, average, math.sqrt(variance), self._highest)
