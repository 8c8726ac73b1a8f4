"""`Reflector`: fills a `Cache` from the backend by list and watch, and keeps it current.

It starts at the first use. When the store is unavailable it retries and resumes where it stopped, and open watches
continue. If that revision has been compacted, it lists again. It follows client-go's reflector and the cacher of
k8s.io/apiserver.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.backend import (
    Backend,
    BackendEvent,
    BackendWatch,
    Compacted,
    FutureRevision,
    KeyValue,
    WatchBatch,
    prefix_end,
)
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.latency import context_without_request
from tetrapod.generic.storage.unreadable import NotReady, Unreadable, UnreadableObjects, not_ready
from tetrapod.machinery.failure import Failure, result_of
from tetrapod.machinery.gvk import GroupResource

log = logging.getLogger(__name__)

PAGE: Final = 500
"""Objects per read while a cache is loaded."""
LOAD_SECONDS: Final = 0.001
"""Longest step of the event loop while a cache is loaded. Loading 100,000 small objects takes a quarter of a second
in all.
"""
FIRST_WAIT: Final = 0.05
LONGEST_WAIT: Final = 5.0
PROGRESS_SECONDS: Final = 0.1
"""Seconds between progress requests while the same readers wait (upstream: progressRequestPeriod)."""
LEAST_PROGRESS_SECONDS: Final = 0.005
"""The least time between progress requests of new readers. Upstream lets them wait for `PROGRESS_SECONDS`, but reads
single objects from etcd. Here a GET would take up to 90 ms while other resources are written (measured).
"""


class Reflector:
    """The background task that fills and follows the watch cache of one resource."""

    def __init__(
        self, backend: Backend, prefix: str, cache: Cache, resource: GroupResource, scheduling: FairScheduling = DEFAULT
    ) -> None:
        """Create a reflector that has not started to fill `cache`.

        Args:
            backend: the store.
            prefix: the prefix of the resource's keys.
            cache: the watch cache to fill.
            resource: the name of the resource in errors about objects that cannot be decrypted.
            scheduling: the limit of events that are applied in one step of the event loop.
        """
        self._scheduling = scheduling
        self._resource = resource
        self._unreadable = ""  # why the stored objects cannot be read; the text of `NotReady`
        self._backend = backend
        self._prefix = prefix
        self._end = prefix_end(prefix)
        self._cache = cache
        self.on_begin: Callable[[], None] | None = None
        """Called when the background task starts."""
        self._stream: BackendWatch | None = None
        self._pending_events: deque[BackendEvent] = deque()  # received events that have not been applied
        self._task: asyncio.Task[None] | None = None
        self._progress_requests: asyncio.Task[None] | None = None
        self._new_reader = asyncio.Event()
        self._first_fill: asyncio.Future[Failure[Unavailable] | None] | None = None
        cache.fanout.revision = self.revision

    def revision(self) -> int:
        """Return the revision up to which the cache has every change; 0 before it has been filled.

        It may be later than the last event of the resource, because the store reports progress.
        """
        if self._stream is not None and not self._pending_events:
            return max(self._cache.revision, self._stream.progress)
        return self._cache.revision

    def begin(self) -> None:
        """Start the background task that fills and follows the cache, unless it has been started."""
        if self._task is None:
            self._task = asyncio.create_task(
                self._run(), name=f"reflector {self._prefix}", context=context_without_request()
            )
            if self.on_begin is not None:
                self.on_begin()

    async def ready(self) -> None:
        """Wait without a time limit until the cache has been filled, starting to fill it if necessary.

        Raises:
            NotReady: the last attempt failed because of unreadable stored values; raised at once, without waiting for
                a retry.
            Unavailable: an attempt to fill the cache failed while this call waited.
        """
        self.begin()
        if not self._cache.filled:
            if self._unreadable:
                raise NotReady(self._unreadable)
            if self._first_fill is None:
                self._first_fill = asyncio.get_running_loop().create_future()
            if (failure := await result_of(self._first_fill)) is not None:
                raise failure.error()

    async def reach(self, revision: int, seconds: float) -> bool:
        """Wait up to `seconds` until the cache has reached `revision`, and return whether it has.

        During that time, the store is asked for progress notifications.
        """
        if self.revision() < revision:
            self._catch_up()
        if self.revision() >= revision:
            return True
        started = time.monotonic()
        reached = self._cache.reached(revision)
        self._new_reader.set()
        if self._progress_requests is None:
            self._progress_requests = asyncio.create_task(self._request_progress(), context=context_without_request())
        try:
            async with asyncio.timeout(seconds):
                await reached
        except TimeoutError:
            return self.revision() >= revision
        finally:
            self._cache.counters.record_wait(time.monotonic() - started)
        return True

    async def _request_progress(self) -> None:
        try:
            while self._cache.awaited:
                self._new_reader.clear()
                if self._stream is not None:
                    self._stream.request_progress()
                await asyncio.sleep(LEAST_PROGRESS_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROGRESS_SECONDS - LEAST_PROGRESS_SECONDS):
                        await self._new_reader.wait()
        finally:
            self._progress_requests = None

    async def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            start_revision = self._cache.revision
            try:
                if not self._cache.filled:
                    await self._fill()
                await self._follow()
            except (Compacted, FutureRevision) as error:
                log.info("listing %s again: %s", self._prefix, error)
                if self._cache.revision > start_revision:
                    wait = FIRST_WAIT
                await self._refill()
            except Exception as error:
                if isinstance(error, Unreadable):
                    self._cache.forget()
                self._report(error)
            if self._cache.revision > start_revision:
                wait = FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _refill(self) -> None:
        try:
            await self._fill()
        except Exception as error:
            self._report(error)

    async def _fill(self) -> None:
        started = time.monotonic()
        try:
            self._cache.replace(*await self._read_all())
        except Exception:
            self._cache.counters.fill_errors += 1
            raise
        self._cache.counters.record_fill(time.monotonic() - started)
        self._unreadable = ""
        if self._first_fill is not None and not self._first_fill.done():
            self._first_fill.set_result(None)
        self._first_fill = None

    async def _read_all(self) -> tuple[Entries, int]:
        """Read all objects at one revision, in pages. Return them with that revision.

        Raises:
            Unreadable: objects cannot be read.
        """
        entries = Entries()
        unreadable = UnreadableObjects()
        timer = YieldTimer(LOAD_SECONDS)
        page = await self._backend.range(self._prefix, self._end, limit=PAGE, counted=False)
        revision = page.revision
        await self._load(page.kvs, entries, unreadable, timer)
        while page.more:
            page = await self._backend.range(
                page.kvs[-1].key + "\0", self._end, limit=PAGE, revision=revision, counted=False
            )
            await self._load(page.kvs, entries, unreadable, timer)
        unreadable.check()
        return entries, revision

    async def _load(
        self, kvs: Sequence[KeyValue], entries: Entries, unreadable: UnreadableObjects, timer: YieldTimer
    ) -> None:
        """Append the objects of a page to `entries`, yielding to the event loop when `timer` is due.

        One timer serves all pages, because a read of the embedded store may return without yielding.

        Args:
            kvs: the keys of the page.
            entries: gets the objects.
            unreadable: gets those that cannot be read.
            timer: says when to yield.

        Raises:
            Unreadable: too many objects cannot be read.
        """
        for kv in kvs:
            try:
                entries.append(await offloaded(len(kv.value) >= LARGE, self._cache.entry, kv))
            except Unreadable as error:
                unreadable.add(error)
            await timer.yield_if_due()

    async def _follow(self) -> None:
        async with self._backend.watch(self._prefix, self._end, self._cache.revision + 1, previous=False) as stream:
            self._stream = stream
            try:
                async for batch in stream:
                    revision = self._receive(batch, stream)
                    while len(self._pending_events) > self._most_at_once():
                        self._cache.apply(self._next_slice())
                        await asyncio.sleep(0)  # a read may apply the rest in between (`_catch_up`)
                    self._apply_pending(revision, stream)
            finally:
                if not self._pending_events:
                    self._cache.advance(stream.progress)
                self._pending_events.clear()
                self._stream = None

    def _most_at_once(self) -> int:
        """Return how many events are applied before other work of the event loop.

        It is `FairScheduling.events` while at most `FairScheduling.few_watchers` watches are open. With more watches,
        slices would delay the events too much, and the number is unlimited.
        """
        scheduling = self._scheduling
        few = scheduling.enabled and len(self._cache.fanout) <= scheduling.few_watchers
        return scheduling.events if few else sys.maxsize

    def _next_slice(self) -> list[BackendEvent]:
        """Remove the first `scheduling.events` pending events, and return them.

        The slice is longer if more events have the revision of its last one. At least `scheduling.events` must be
        pending (see `_most_at_once`).
        """
        pending = self._pending_events
        events = [pending.popleft() for _ in range(self._scheduling.events)]
        while pending and pending[0].revision == events[-1].revision:
            events.append(pending.popleft())
        return events

    def _receive(self, batch: WatchBatch, stream: BackendWatch) -> int:
        """Append a batch to the pending events, and further ones that have arrived, as far as no slicing is needed.

        etcd sends the events of concurrent writes one by one. Applied together, they take one write to each watcher.

        Returns:
            The revision of the last batch.
        """
        following: WatchBatch | None = batch
        while following is not None:
            batch = following
            if batch.events:
                self._pending_events.extend(batch.events)
            else:
                self._cache.apply(())  # counts the progress notification
            following = stream.next_if_ready() if len(self._pending_events) < self._most_at_once() else None
        return batch.revision

    def _apply_pending(self, revision: int, stream: BackendWatch) -> None:
        """Apply the pending events, if any. The cache has then reached `revision`, and the progress of the stream."""
        if self._pending_events:
            self._cache.apply(list(self._pending_events))
            self._pending_events.clear()
        self._cache.advance(max(revision, stream.progress))

    def _catch_up(self) -> None:
        """Apply the events that the watch of the store has received, without waiting for the task that follows it.

        Under load, it would take several steps of the event loop until that task runs.
        """
        stream = self._stream
        if stream is None:
            return
        if self._pending_events:
            self._apply_pending(self._pending_events[-1].revision, stream)
        while (batch := stream.next_if_ready()) is not None:
            self._apply_pending(self._receive(batch, stream), stream)

    def _report(self, error: Exception) -> None:
        """Log why the cache could not be filled or followed, and fail the reads that wait for it to be filled."""
        if isinstance(error, Unreadable):
            error = not_ready(error, self._resource)
            self._unreadable = str(error)
            log.error("following %s failed: %s", self._prefix, error)
        elif not isinstance(error, Unavailable):
            log.error("following %s failed: %s", self._prefix, error, exc_info=error)
        else:
            log.debug("following %s: %s", self._prefix, error)
        if self._first_fill is not None and not self._first_fill.done():
            reported = (
                error if isinstance(error, Unavailable) else Unavailable(f"the cache could not be filled: {error}")
            )
            self._first_fill.set_result(Failure(reported))
        self._first_fill = None

    async def close(self) -> None:
        """Stop the background tasks, and fail the reads that wait for the cache to be filled with `Unavailable`."""
        tasks = [task for task in (self._task, self._progress_requests) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._report(Unavailable("the cache is closed"))
