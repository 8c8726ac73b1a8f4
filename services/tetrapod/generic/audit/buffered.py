"""The mode `batch`: events wait in a bounded queue and go out in batches; no request waits for them.

What does not fit into the queue is lost, counted and logged. Upstream: plugin/pkg/audit/buffered/buffered.go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.metrics import plugin_error

log = logging.getLogger(__name__)
_NAME = "buffered"


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """`concurrent`: a batch does not wait until the one before it is delivered."""

    buffer_size: int = 10_000
    max_size: int = 400
    max_wait: float = 30.0
    throttle: bool = True
    throttle_qps: float = 10.0
    throttle_burst: int = 15
    concurrent: bool = True


class Buffered:
    def __init__(self, backend: Backend, config: BatchConfig) -> None:
        self._backend, self._config = backend, config
        self._queue: asyncio.Queue[Event] = asyncio.Queue(config.buffer_size)
        self._bucket = _TokenBucket(config.throttle_qps, config.throttle_burst) if config.throttle else None
        self._sending: set[asyncio.Task[bool]] = set()
        self._stopping = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    async def process(self, events: Sequence[Event]) -> bool:
        """Always True: the request is not to blame."""
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="audit/batches")
        for i, event in enumerate(events):
            if self._stopping.is_set():
                plugin_error(_NAME, "audit backend shut down", events[i:])
                break
            try:
                self._queue.put_nowait(event)
            except asyncio.QueueFull:
                plugin_error(_NAME, "audit buffer queue blocked", events[i:])
                break
        return True

    async def close(self) -> None:
        """Send what is queued, and wait until everything is delivered or given up."""
        self._stopping.set()
        if self._worker is not None:
            await self._worker
        while not self._queue.empty():
            await self._send(self._at_hand())
        if self._sending:
            await asyncio.wait(self._sending)
        await self._backend.close()

    async def _work(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        while not self._stopping.is_set():
            batch = await self._collect(stopping)
            if batch:
                await self._send(batch)

    async def _collect(self, stopping: asyncio.Task[bool]) -> list[Event]:
        """A full batch, or what has come until the time is over or the server stops."""
        config = self._config
        batch: list[Event] = []
        until = time.monotonic() + config.max_wait
        while len(batch) < config.max_size:
            if not self._queue.empty():
                batch.append(self._queue.get_nowait())
                continue
            # Batches of one are not waited for by time: there is nothing to send before one comes.
            left = until - time.monotonic() if config.max_size > 1 else None
            if left is not None and left <= 0:
                break
            getting = asyncio.create_task(self._queue.get())
            await asyncio.wait({getting, stopping}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                batch.append(getting.result())
                continue
            getting.cancel()
            break
        return batch

    def _at_hand(self) -> list[Event]:
        return [self._queue.get_nowait() for _ in range(min(self._queue.qsize(), self._config.max_size))]

    async def _send(self, batch: list[Event]) -> None:
        if self._bucket is not None:
            await self._bucket.take()
        if not self._config.concurrent:
            await self._backend.process(batch)
            return
        task = asyncio.create_task(self._backend.process(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


class _TokenBucket:
    """`rate` a second, `burst` at once (upstream: client-go's flowcontrol.NewTokenBucketRateLimiter)."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._seen = float(burst), time.monotonic()

    async def take(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate) - 1
        self._seen = now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)
