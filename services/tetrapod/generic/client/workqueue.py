"""`WorkQueue`: a queue of keys to reconcile.

Each key is processed by one worker at a time and retried with exponential backoff.
Upstream: k8s.io/client-go/util/workqueue (rate limiting queue).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from tetrapod.generic.client import metrics

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

_FIRST_DELAY: Final = 0.005
_LONGEST_DELAY: Final = 60.0


class ExpectedFailure(Exception):
    """An error that does not show a fault of the server and may last: it is logged at debug level only."""


class WorkQueue(Generic[K]):
    """A rate limiting queue of keys to reconcile, with the workers that process them.

    Args:
        name: the name of the queue in metrics and logs.
        work: reconciles one key. Any exception is logged, and the key is retried after 10 ms, then twice as long each
            time, up to a minute.

    Attributes:
        in_progress: the keys that are being processed, with their start times (of time.monotonic()).
    """

    def __init__(self, name: str, work: Callable[[K], Awaitable[None]]) -> None:
        self.name = name
        self._work = work
        self._queue: deque[K] = deque()
        self._since: dict[K, float] = {}  # when each waiting key was added
        self._waiting: set[K] = set()  # queued, or to be queued again when its work ends
        self.in_progress: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._delayed: dict[K, asyncio.TimerHandle] = {}
        self._more = asyncio.Event()
        metrics.register(self)

    def __len__(self) -> int:
        return len(self._queue)

    def __bool__(self) -> bool:
        return True

    def add(self, key: K) -> None:
        """Add a key, unless it is already waiting. A key that is being processed is processed again afterwards."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        self._since[key] = time.monotonic()
        metrics.ADDS.add((self.name,))
        if key not in self.in_progress:
            self._queue.append(key)
            self._more.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after `seconds`. If several delays are pending for a key, the shortest counts."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        pending = self._delayed.get(key)
        if pending is not None:
            if pending.when() <= when:
                return
            pending.cancel()
        self._delayed[key] = loop.call_at(when, self._add_delayed, key)

    def _add_delayed(self, key: K) -> None:
        self._delayed.pop(key, None)
        self.add(key)

    async def run(self, workers: int = 1) -> None:
        """Process keys until cancelled, up to `workers` different keys at a time."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            while not self._queue:
                self._more.clear()
                await self._more.wait()
            key = self._queue.popleft()
            self._waiting.discard(key)
            began = self.in_progress[key] = time.monotonic()
            metrics.QUEUE_SECONDS.observe((self.name,), began - self._since.pop(key, began))
            try:
                await self._work(key)
                self._failures.pop(key, None)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                metrics.RETRIES.add((self.name,))
                level = logging.WARNING if failures > 3 and not isinstance(error, ExpectedFailure) else logging.DEBUG
                log.log(level, "%s: %s: %s", self.name, key, error)
                self.add_after(key, min(_FIRST_DELAY * 2 ** min(failures, 20), _LONGEST_DELAY))
            finally:
                self.in_progress.pop(key, None)
                metrics.WORK_SECONDS.observe((self.name,), time.monotonic() - began)
                if key in self._waiting:
                    self._queue.append(key)
                    self._more.set()
