"""The limit of --max-connection-bytes-per-sec: data is passed on at most at a given rate.

Upstream: github.com/mxk/go-flowrate/flowrate, Monitor.Limit, which UpgradeAwareHandler and StreamTranslatorHandler use
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from tetrapod.generic.proxy.held_protocol import HeldProtocol

SAMPLE_SECONDS: Final = 0.1
"""The limit applies to each period of this length, as upstream. At least one byte is delivered in each."""
_SHORTEST_WAIT: Final = 0.005


class Throttle:
    """Delivers data in order, at a limited rate. While data waits, the connection that it came from is not read.

    Args:
        rate: bytes per second; 0 delivers everything at once.
        deliver: called with each piece.
        source: the connection that the data came from.
    """

    def __init__(self, rate: int, deliver: Callable[[bytes], object], source: HeldProtocol) -> None:
        self._limit = max(1, round(rate * SAMPLE_SECONDS)) if rate > 0 else 0
        self._deliver = deliver
        self._source = source
        self._waiting: deque[bytes | Callable[[], object]] = deque()
        self._loop = asyncio.get_running_loop()
        self._sample_start = self._loop.time()
        self._sampled = 0
        self._timer: asyncio.TimerHandle | None = None

    def send(self, data: bytes) -> None:
        """Deliver data, at once as far as the limit allows."""
        if not self._limit:
            self._deliver(data)
        elif data:
            self._waiting.append(data)
            if self._timer is None:
                self._run()

    def then(self, action: Callable[[], object]) -> None:
        """Call `action` once all data that was sent before has been delivered."""
        if self._waiting:
            self._waiting.append(action)
        else:
            action()

    def close(self) -> None:
        """Drop the data and the actions that wait."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._deliver = _drop

    def _run(self) -> None:
        """Deliver data until the limit of the current period is reached, and continue in the next one."""
        self._timer = None
        while self._waiting:
            item = self._waiting.popleft()
            if not isinstance(item, bytes):
                item()
                continue
            now = self._loop.time()
            if now - self._sample_start >= SAMPLE_SECONDS:
                self._sample_start, self._sampled = now, 0
            allowed = self._limit - self._sampled
            if allowed < len(item):
                self._waiting.appendleft(item[allowed:])
            if allowed <= 0:
                wait = self._sample_start + SAMPLE_SECONDS - now
                self._timer = self._loop.call_later(max(wait, _SHORTEST_WAIT), self._run)
                self._source.hold(self)
                return
            self._sampled += min(allowed, len(item))
            self._deliver(item[:allowed])
        self._source.release(self)


def _drop(_: bytes) -> None: ...
