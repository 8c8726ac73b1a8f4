"""The mode `batch`: events wait in a bounded queue and are sent in batches; requests do not wait for them.

Events that do not fit into the queue are dropped, counted and logged. Upstream: plugin/pkg/audit/buffered/buffered.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.metrics import plugin_error

_NAME = "buffered"


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """The options of batches (flags --audit-log-batch-… and --audit-webhook-batch-…).

    - `buffer_size` is the number of events in the queue, `max_size` that of a batch.
    - `max_wait` is the number of seconds after which a batch is sent even if it is not full.
    - With `throttle`, `throttle_qps` batches a second are sent, and `throttle_burst` at once.
    - With `concurrent`, a batch does not wait until the previous one is delivered.
    """

    buffer_size: int = 10_000
    max_size: int = 400
    max_wait: float = 30.0
    throttle: bool = True
    throttle_qps: float = 10.0
    throttle_burst: int = 15
    concurrent: bool = True


class Buffered:
    """A backend that queues events in memory; a task sends them in batches to another backend.

    The task starts with the first events. `close` sends the queued ones and closes the other backend too.

    Args:
        backend: the backend to which batches are sent.
        config: the limits of the queue, of batches and of their rate.
    """

    def __init__(self, backend: Backend, config: BatchConfig) -> None:
        self._backend, self._config = backend, config
        self._waiting: deque[Event] = deque()
        self._enough = min(config.max_size, config.buffer_size)
        self._bucket = _TokenBucket(config.throttle_qps, config.throttle_burst) if config.throttle else None
        self._sending: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stopping = False
        self._worker: asyncio.Task[None] | None = None

    async def process(self, events: Sequence[Event]) -> bool:
        """Queue events and return True, because a request does not fail for a full queue.

        Events that do not fit are dropped, counted and logged; after `close`, all are.
        """
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="audit/batches")
        free = 0 if self._stopping else self._config.buffer_size - len(self._waiting)
        self._waiting.extend(events[:free])
        if len(self._waiting) >= self._enough:
            self._wake.set()
        if free < len(events):
            plugin_error(
                _NAME, "audit backend shut down" if self._stopping else "audit buffer queue blocked", events[free:]
            )
        return True

    async def close(self) -> None:
        """Send the queued events, wait until all are delivered or dropped, and close the other backend."""
        self._stopping = True
        self._wake.set()
        if self._worker is not None:
            await self._worker
        if self._sending:
            await asyncio.wait(self._sending)
        await self._backend.close()

    async def _work(self) -> None:
        while self._waiting or not self._stopping:
            await self._enough_or_late()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._config.max_size))]
            if batch:
                await self._send(batch)

    async def _enough_or_late(self) -> None:
        """Wait until a batch is full, `max_wait` is over or the backend is closed.

        A batch size of 1 needs no time limit.
        """
        if len(self._waiting) >= self._enough or self._stopping:
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.max_wait if self._config.max_size > 1 else None):
                await self._wake.wait()

    async def _send(self, batch: list[Event]) -> None:
        if self._bucket is not None:
            await self._bucket.take()
        if not self._config.concurrent:
            await self._deliver(batch)
            return
        task = asyncio.create_task(self._deliver(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _deliver(self, batch: list[Event]) -> None:
        """Pass one batch to the backend. An exception is logged and loses this batch only, not the following ones."""
        try:
            await self._backend.process(batch)
        except Exception as error:
            plugin_error(_NAME, error, batch)


class _TokenBucket:
    """A rate limiter: `rate` tokens a second, and `burst` at once.

    Upstream: client-go's flowcontrol.NewTokenBucketRateLimiter
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._refilled = float(burst), time.monotonic()

    async def take(self) -> None:
        """Take a token, waiting until there is one."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled) * self._rate) - 1
        self._refilled = now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)
