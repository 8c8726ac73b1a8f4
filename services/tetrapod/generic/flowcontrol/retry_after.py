"""`RetryAfter`: the Retry-After value of rejected requests, which grows while many are rejected.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/dropped_requests_tracker.go
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

_LONGEST: Final = 32


class RetryAfter:
    """The Retry-After seconds of one priority level, in the attribute `seconds`.

    The value doubles, up to 32, if at least three requests a second were rejected for that many seconds. It decreases
    by one if fewer than one a second were rejected.

    Args:
        clock: returns the current time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.seconds = 1
        self._clock = clock
        self._history: deque[tuple[int, int]] = deque()  # (second, number of rejections in it)
        self._second = 0
        self._count = 0
        self._raised = 0

    def count_rejection(self) -> None:
        """Count a rejection, and adjust `seconds` at the first rejection of each second."""
        now = int(self._clock())
        if now == self._second:
            self._count += 1
            return
        self._history.append((self._second, self._count))
        while self._history and now - self._history[0][0] > min(2 * self.seconds, _LONGEST):
            self._history.popleft()
        self._second, self._count = now, 1
        self._adjust(now)

    def _adjust(self, now: int) -> None:
        recent = sum(count for second, count in self._history if now - self.seconds <= second < now)
        if now - self._raised >= self.seconds and recent >= 3 * self.seconds:
            self.seconds = min(2 * self.seconds, _LONGEST)
            self._raised = now
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1
