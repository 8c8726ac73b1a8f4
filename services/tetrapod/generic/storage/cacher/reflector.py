"""`Reflector`: fills a `Cache` from the backend by list and watch, and keeps it in step, for as long as the process lives.

Begun on first use. When the store is away it keeps asking and goes on where it stopped, and open watches notice nothing; when it
stopped too long ago (compacted) it lists anew. Follows client-go's reflector and the cacher of k8s.io/apiserver.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from tetrapod.generic.storage.backend import Backend, BackendEvent, BackendWatch, Compacted, FutureRevision, KeyValue
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.encoding import CorruptObject
from tetrapod.generic.storage.keys import prefix_end
from tetrapod.generic.storage.unreadable import NotReady, NotTransformable, not_ready
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupResource

log = logging.getLogger(__name__)

PAGE: Final = 1000
FIRST_WAIT: Final = 0.05
LONGEST_WAIT: Final = 5.0
PROGRESS_SECONDS: Final = 0.1
"""How often progress is asked for while somebody waits (upstream: progressRequestPeriod)."""
SLICE: Final = 6
"""Events that are applied in one step of the loop, where there are more: others want it too."""
FEW: Final = 8
"""Watches, beyond which a batch is applied whole all the same: so they get it in one piece, which costs each of them less."""


class Reflector:
    def __init__(self, backend: Backend, prefix: str, cache: Cache, resource: GroupResource) -> None:
        """`resource` is what is said to be unreadable."""
        self._resource = resource
        self._unreadable: NotReady | None = None
        self._backend = backend
        self._prefix = prefix
        self._end = prefix_end(prefix)
        self._cache = cache
        self._stream: BackendWatch | None = None
        self._rest: deque[BackendEvent] = deque()  # of what has come: it is still to be applied
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        cache.fanout.revision = self.revision

    def revision(self) -> int:
        """Everything up to this revision has been applied. (A stream in step may know more than its last event told.)"""
        if self._stream is not None and not self._rest:
            return max(self._cache.revision, self._stream.progress)
        return self._cache.revision

    async def ready(self) -> None:
        """Returns once the cache has been filled. Raises Unavailable when an attempt to fill it failed meanwhile.

        Where the last one failed by what is stored, not by a store that is away, nobody waits for the next one: NotReady at once.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"reflector {self._prefix}")
        if not self._cache.filled:
            if self._unreadable is not None:
                raise self._unreadable
            if self._first is None:
                self._first = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._first)

    async def reach(self, revision: int, seconds: float) -> bool:
        """Wait until `revision` has been applied; False if it takes longer than `seconds`."""
        if self.revision() < revision:
            self._catch_up()
        if self.revision() >= revision:
            return True
        began = time.monotonic()
        reached = self._cache.reached(revision)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_progress())
        try:
            async with asyncio.timeout(seconds):
                await reached
        except TimeoutError:
            return self.revision() >= revision
        finally:
            self._cache.tally.waited(time.monotonic() - began)
        return True

    async def _ask_progress(self) -> None:
        try:
            while self._cache.awaited:
                with contextlib.suppress(Unavailable):
                    await self._backend.request_progress()
                await asyncio.sleep(PROGRESS_SECONDS)
        finally:
            self._asking = None

    async def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            before = self._cache.revision
            try:
                if not self._cache.filled:
                    await self._fill()
                await self._follow()
            except (Compacted, FutureRevision) as error:
                log.info("listing %s anew: %s", self._prefix, error)
                if self._cache.revision > before:
                    wait = FIRST_WAIT
                await self._refill()
            except Exception as error:
                if isinstance(error, NotTransformable):
                    self._cache.forget()
                self._report(error)
            if self._cache.revision > before:
                wait = FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _refill(self) -> None:
        try:
            await self._fill()
        except Exception as error:
            self._report(error)

    async def _fill(self) -> None:
        began = time.monotonic()
        try:
            self._cache.replace(*await self._everything())
        except Exception:
            self._cache.tally.fill_errors += 1
            raise
        self._cache.tally.filled(time.monotonic() - began)
        self._unreadable = None
        if self._first is not None and not self._first.done():
            self._first.set_result(None)
        self._first = None

    async def _everything(self) -> tuple[list[StoredEntry], int]:
        """Read at one revision, in pages."""
        page = await self._backend.range(self._prefix, self._end, limit=PAGE)
        revision, entries = page.revision, self._entries(page.kvs)
        while page.more:
            page = await self._backend.range(page.kvs[-1].key + "\0", self._end, limit=PAGE, revision=revision)
            entries += self._entries(page.kvs)
        return entries, revision

    def _entries(self, kvs: Sequence[KeyValue]) -> list[StoredEntry]:
        entries, encrypted = [], []
        for kv in kvs:
            try:
                entries.append(StoredEntry.stored(kv.key[len(self._prefix) :], kv.value, kv.mod_revision, kv.lease))
            except CorruptObject as error:
                log.error("%s cannot be served: %s", kv.key, error)
                self._cache.tally.undecodable += 1
            except NotTransformable as error:
                encrypted.append((kv.key, error.reason))
        if encrypted:
            raise NotTransformable(encrypted[0][1], encrypted[0][0], len(encrypted) - 1)
        return entries

    async def _follow(self) -> None:
        async with self._backend.watch(self._prefix, self._end, self._cache.revision + 1, previous=False) as stream:
            self._stream = stream
            try:
                async for batch in stream:
                    self._rest.extend(batch.events)
                    while len(self._rest) > SLICE and len(self._cache.fanout) <= FEW:
                        self._cache.apply(self._slice())
                        await asyncio.sleep(0)  # meanwhile somebody may have caught up
                    if self._rest or not batch.events:
                        self._apply_rest(batch.revision, stream)
            finally:
                if not self._rest:
                    self._cache.advance(stream.progress)
                self._rest.clear()
                self._stream = None

    def _slice(self) -> list[BackendEvent]:
        """The next few; those of one revision stay together."""
        rest = self._rest
        events = [rest.popleft() for _ in range(SLICE)]
        while rest and rest[0].revision == events[-1].revision:
            events.append(rest.popleft())
        return events

    def _apply_rest(self, revision: int, stream: BackendWatch) -> None:
        self._cache.apply(list(self._rest))
        self._rest.clear()
        self._cache.advance(max(revision, stream.progress))

    def _catch_up(self) -> None:
        """Apply what has come already: under load it would be some steps of the loop until the task that follows has its turn."""
        stream = self._stream
        if stream is None:
            return
        if self._rest:
            self._apply_rest(self._rest[-1].revision, stream)
        while (batch := stream.at_hand()) is not None:
            self._rest.extend(batch.events)
            self._apply_rest(batch.revision, stream)

    def _report(self, error: Exception) -> None:
        """Whoever waits for the first fill is told; those who read an older cache read on."""
        if isinstance(error, NotTransformable):
            error = self._unreadable = not_ready(error, self._resource)
            log.error("following %s failed: %s", self._prefix, error)
        elif not isinstance(error, Unavailable):
            log.error("following %s failed: %s", self._prefix, error, exc_info=error)
        else:
            log.debug("following %s: %s", self._prefix, error)
        if self._first is not None and not self._first.done():
            self._first.set_exception(error if isinstance(error, Unavailable) else Unavailable(f"the cache could not be filled: {error}"))
            self._first.exception()  # it may be that nobody waits any more
        self._first = None

    async def close(self) -> None:
        tasks = [task for task in (self._task, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._report(Unavailable("the cache is closed"))
