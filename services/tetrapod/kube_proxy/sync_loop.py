"""`SyncLoop`: repeats work when it is requested, at most once in an interval, and regularly without a request.

Upstream: pkg/proxy/runner/bounded_frequency_runner.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class SyncLoop:
    """A loop around some work.

    Args:
        name: the name in logs.
        work: the work. It returns whether it succeeded.
        pause: the seconds between the end of the work and its next start.
        retry: the seconds after which failed work is repeated.
        longest: the seconds after which the work is repeated without a request.
    """

    def __init__(
        self, name: str, work: Callable[[], Awaitable[bool]], *, pause: float, retry: float, longest: float
    ) -> None:
        self._name = name
        self._work = work
        self._pause = pause
        self._retry = min(retry, longest)
        self._longest = longest
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Request the work. Several requests before it starts are one."""
        self._requested.set()

    async def run(self) -> None:
        """Work until cancelled. Exceptions of the work are logged, and count as failures."""
        wait = self._longest
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._requested.wait()
            except TimeoutError:
                log.debug("%s: repeated after %s s", self._name, wait)
            self._requested.clear()
            try:
                succeeded = await self._work()
            except Exception:
                log.exception("%s failed", self._name)
                succeeded = False
            wait = self._longest if succeeded else self._retry
            await asyncio.sleep(self._pause)
