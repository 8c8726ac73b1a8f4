"""`CacheWatch`, an open watch, and `Fanout`, which delivers each change to the watches that it concerns."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Final, TypeAlias, TypeVar

from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.cacher.counters import CacheCounters
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.window import Change
from tetrapod.generic.storage.entry import Predicate
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import Sink, WatchEvent
from tetrapod.machinery.failure import result_of

log = logging.getLogger(__name__)
T = TypeVar("T")

QUEUE: Final = 4096
"""Events that may be queued for a watch. A watch that falls further behind is ended."""
CHUNK: Final = 500
BOOKMARKS_STEP: Final = 0.001
"""Seconds of one step of the event loop that sends bookmarks. Those of the 6,000 watches of ConfigMaps in a cluster of
100 nodes take 130 ms of CPU time.
"""


Group: TypeAlias = tuple[str, str | None]
"""The prefix of watches, and the value that they require of the indexed field; None if they require none."""


class CacheWatch:
    """The implementation of `Watch` over the cache.

    Args:
        fanout: delivers the changes of the cache. `close` unregisters the watch there.
        query: the selectors and options. Its `prefix` is "" (all objects), "ns/" or a whole key.
        start_revision: the revision of the initial state; only later changes are delivered.
    """

    __slots__ = (
        "_end",
        "_fanout",
        "_missed",
        "_queue",
        "_sink",
        "_snapshot",
        "_snapshot_end",
        "_waiter",
        "bookmarks",
        "closed",
        "group",
        "index",
        "predicate",
        "scope",
        "start_revision",
    )

    def __init__(self, fanout: Fanout, query: WatchQuery, start_revision: int) -> None:
        self._fanout = fanout
        self.scope = query.prefix
        self.predicate: Predicate = query.predicate
        self.index = None if query.single else query.predicate.index
        self.group: Group = (query.prefix, None if self.index is None else self.index.value)
        self.bookmarks = query.bookmarks
        self.start_revision = start_revision
        self.closed = False
        # Lists, because an empty deque takes 760 bytes. These two are in reverse order, and taken from the end.
        self._snapshot: list[StoredEntry] = []
        self._missed: list[WatchEvent] = []
        self._snapshot_end: WatchEvent | None = None
        self._queue: list[WatchEvent] = []
        self._sink: Sink | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._end: asyncio.Future[None] | None = None

    # Called by the cacher

    def begin_with(self, snapshot: Sequence[StoredEntry], end: WatchEvent | None) -> None:
        """Set the initial state: the watch begins with an ADDED event for each object that matches the selectors.

        Args:
            snapshot: the objects that exist when the watch begins.
            end: the bookmark that closes the initial events; None if the client did not ask for it.
        """
        self._snapshot = list(reversed(snapshot))
        self._snapshot_end = end

    def begin_after(self, missed: Sequence[WatchEvent]) -> None:
        """Set the initial events of a watch that resumes at a resource version: `missed`, the events since then."""
        self._missed = list(reversed(missed))

    def push(self, events: Sequence[WatchEvent]) -> None:
        """Pass events to the sink, or queue them if the watch has no sink.

        More than `QUEUE` (4096) queued events end the watch and are dropped.
        """
        if self._sink is not None:
            self._send(self._sink, events)
            return
        self._queue.extend(events)
        if len(self._queue) > QUEUE:
            log.warning("a watch of %r was ended: its client is too slow", self.scope)
            self._fanout.counters.terminated += 1
            self._queue.clear()
            self._snapshot.clear()
            self._missed.clear()
            self._snapshot_end = None
            self.close()
        self._wake()

    # Called by the client's handler

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        return self._batches()

    async def initial(self) -> AsyncIterator[list[WatchEvent]]:
        while self._has_initial_events:
            if chunk := self._next_chunk():
                yield chunk
            else:
                await asyncio.sleep(0)  # no entry of the chunk matched: yield to the event loop

    async def _batches(self) -> AsyncIterator[list[WatchEvent]]:
        async for chunk in self.initial():
            yield chunk
        while True:
            if self._queue:
                batch, self._queue = self._queue, []
                yield batch
            elif self.closed:
                return
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def subscribe(self, sink: Sink) -> None:
        while self._has_initial_events:
            if chunk := self._next_chunk():
                self._send(sink, chunk)
        if self._queue:
            batch, self._queue = self._queue, []
            self._send(sink, batch)
        if not self.closed:
            self._sink = sink

    async def ended(self) -> None:
        if not self.closed:
            if self._end is None:
                self._end = asyncio.get_running_loop().create_future()
            await result_of(self._end)

    def send_bookmark(self) -> None:
        if not self.closed:
            self.push([WatchEvent("BOOKMARK", None, max(self.start_revision, self._fanout.revision()))])

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._sink = None
        self._fanout.remove(self)
        self._wake()
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    @property
    def _has_initial_events(self) -> bool:
        return bool(self._snapshot or self._missed) or self._snapshot_end is not None

    def _next_chunk(self) -> list[WatchEvent]:
        if self._missed:
            missed = _taken(self._missed)
            self._fanout.counters.initial += len(missed)
            return missed
        matches = self.predicate.matcher
        chunk = [WatchEvent("ADDED", entry, entry.revision) for entry in _taken(self._snapshot) if matches(entry)]
        self._fanout.counters.initial += len(chunk)
        if not self._snapshot and self._snapshot_end is not None:
            chunk.append(self._snapshot_end)
            self._snapshot_end = None
        return chunk

    def _send(self, sink: Sink, events: Sequence[WatchEvent]) -> None:
        try:
            sink(events)
        except Exception:
            log.exception("a watch of %r was ended: its sink failed", self.scope)
            self.close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _taken(values: list[T]) -> list[T]:
    """Remove the last values of a list, at most `CHUNK`, and return them in reverse order."""
    taken = values[: -CHUNK - 1 : -1]
    del values[-CHUNK:]
    return taken


class Fanout:
    """The open watches of one cache.

    They are in groups by their prefix: everything (""), a namespace ("ns/"), or one key. Watches that require a value
    of the indexed field have groups by that value too, so that a change of a pod does not visit the watches of all
    kubelets, but only that of its node. Upstream: cacher.go, indexedWatchers.

    Args:
        revision: returns the revision up to which the cache is current, for bookmarks.
        counters: the metrics of the cache.
    """

    def __init__(self, revision: Callable[[], int], counters: CacheCounters) -> None:
        self.revision = revision
        self.counters = counters
        self._groups: dict[Group, dict[CacheWatch, None]] = {}
        self._indexed = 0
        self._value_of: Callable[[StoredEntry], str] | None = None

    def add(self, watch: CacheWatch) -> None:
        """Register a watch, so that it gets all later changes of its keys."""
        self._groups.setdefault(watch.group, {})[watch] = None
        if watch.index is not None:
            self._indexed += 1
            self._value_of = watch.index.of

    def remove(self, watch: CacheWatch) -> None:
        """Unregister a watch. Do nothing if it is not registered."""
        watches = self._groups.get(watch.group)
        if watches is None or watch not in watches:
            return
        del watches[watch]
        if not watches:
            del self._groups[watch.group]
        if watch.index is not None:
            self._indexed -= 1
            if not self._indexed:
                self._value_of = None

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def deliver(self, changes: Sequence[Change], received: float) -> None:
        """Push the events of `changes` to the watches that they concern, with one push for each watch.

        Args:
            changes: at least one change.
            received: the time (`time.monotonic`) at which the changes were received, for the latency metric.
        """
        if not self._groups:
            return
        deliveries = self._deliver_one(changes[0]) if len(changes) == 1 else self._deliver_many(changes)
        if deliveries:
            self.counters.record_delivery(deliveries, received, changes[0].at, time.monotonic())

    def _deliver_many(self, changes: Sequence[Change]) -> int:
        """Deliver several changes, and return the number of events delivered, summed over all watches."""
        batches: dict[CacheWatch, list[WatchEvent]] = {}
        for change in changes:
            for watch in self._watches_of(change):
                if change.revision > watch.start_revision and (event := change.event(watch.predicate)) is not None:
                    batches.setdefault(watch, []).append(event)
        for watch, events in batches.items():
            watch.push(events)
        return sum(map(len, batches.values()))

    def _deliver_one(self, change: Change) -> int:
        batch: tuple[WatchEvent, ...] = ()
        deliveries = 0
        for watch in self._watches_of(change):
            if change.revision > watch.start_revision and (event := change.event(watch.predicate)) is not None:
                if not batch or batch[0] is not event:
                    batch = (event,)
                watch.push(batch)
                deliveries += 1
        return deliveries

    def _watches_of(self, change: Change) -> list[CacheWatch]:
        key, groups = change.key, self._groups
        namespace = key[: key.find("/") + 1]
        prefixes = ("", namespace, key) if namespace else ("", key)
        concerned: list[CacheWatch] = []
        for value in self._values_of(change):
            for prefix in prefixes:
                concerned.extend(groups.get((prefix, value), ()))
        return concerned

    def _values_of(self, change: Change) -> Collection[str | None]:
        """Return None, and the values that the indexed field has before and after a change, if a watch requires any."""
        if self._value_of is None:
            return (None,)
        states = (change.previous, change.entry)
        return {None, *(self._value_of(state) for state in states if state is not None)}

    async def bookmark(self) -> bool:
        """Send a bookmark with the current revision to each watch that asked for them, in short steps of the loop.

        Return whether there are such watches. A watch that begins or ends in between gets none.
        """
        wanting = [watch for watches in self._groups.values() for watch in watches if watch.bookmarks]
        timer = YieldTimer(BOOKMARKS_STEP)
        event: list[WatchEvent] = []
        for watch in wanting:
            await timer.yield_if_due()
            revision = self.revision()
            if not event or event[0].revision != revision:
                event = [WatchEvent("BOOKMARK", None, revision)]
            if revision >= watch.start_revision and not watch.closed:
                watch.push(event)
        return bool(wanting)

    def close(self) -> None:
        """End every watch. Events that are already queued can still be read."""
        for watches in list(self._groups.values()):
            for watch in list(watches):
                watch.close()
