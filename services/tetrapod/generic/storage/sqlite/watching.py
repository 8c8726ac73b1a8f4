"""Watches of the embedded store.

A watch that starts in the past or has fallen behind reads the revisions table; one that is up to date receives the
events of each commit. Commits never wait for a slow watch: if more than `QUEUE` events are pending, they are dropped
and the watch reads them from history again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import BackendEvent, WatchBatch, prefix_end

QUEUE = 8192
CHUNK = 1000

ReadHistory = Callable[[tuple[str, str], int, int, int], Awaitable[list[BackendEvent]]]


class SqliteWatch:
    """The implementation of `BackendWatch` for the keys of `span` (start, end).

    Args:
        hub: publishes the events. Its `revision` is the last published one.
        span: the start of the range, and its end, which is not included.
        from_revision: the first revision to return; 0 means from now on.
        previous: whether events include the previous value.
    """

    def __init__(self, hub: WatchHub, span: tuple[str, str], from_revision: int, previous: bool) -> None:
        self._hub = hub
        self.start, self.end = span
        self.previous = previous
        self._next = from_revision if from_revision > 0 else hub.revision + 1
        self._lagging = self._next <= hub.revision
        self._queue: deque[BackendEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._progress_requested = False
        self._closed = False

    @property
    def progress(self) -> int:
        if self._lagging:
            return self._next - 1
        return self._queue[0].revision - 1 if self._queue else self._hub.revision

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while True:
            if self._closed:
                raise Unavailable("the store is closed")
            if self._lagging:
                replayed = await self._replay()
                if replayed.events:
                    return replayed
            elif (batch := self.next_if_ready()) is not None:
                return batch
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def next_if_ready(self) -> WatchBatch | None:
        if self._closed or self._lagging:
            return None
        if self._queue:
            events = list(self._queue)
            self._queue.clear()
            return WatchBatch(events, events[-1].revision)
        if self._progress_requested:
            self._progress_requested = False
            return WatchBatch((), self._hub.revision)
        return None

    async def _replay(self) -> WatchBatch:
        last = self._hub.revision
        events = await self._hub.history((self.start, self.end), self._next, last, CHUNK)
        reached = last if len(events) < CHUNK else events[-1].revision
        self._next = reached + 1
        self._lagging = self._next <= self._hub.revision
        return WatchBatch(events, reached)

    def publish(self, event: BackendEvent) -> None:
        """Queue an event. If the queue is full, drop all queued events; the iterator then reads them from history.

        Do nothing if the watch is reading history anyway, or for an event before its start.
        """
        if self._lagging or event.revision < self._next:
            return
        if len(self._queue) >= QUEUE:
            self._next = self._queue[0].revision
            self._lagging = True
            self._queue.clear()
        else:
            self._queue.append(event)
            self._next = event.revision + 1
        self.wake()

    def request_progress(self) -> None:
        """Make the iterator return a batch without events, once all events have been returned."""
        self._progress_requested = True
        self.wake()

    def close(self) -> None:
        """End the watch: the iterator raises Unavailable."""
        self._closed = True
        self.wake()

    def wake(self) -> None:
        """Wake the iterator if it waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WatchHub:
    """All open watches of one store.

    Most watches cover a directory such as `/registry/pods/` and are found by the directories of an event's key. The
    others are compared one by one.

    Args:
        revision: the last revision that has been published to watches.
        history: reads events (range, first and last revision, maximum number) for watches that are behind.
    """

    def __init__(self, revision: int, history: ReadHistory) -> None:
        self.revision = revision
        self.history = history
        self._of_folders: dict[str, list[SqliteWatch]] = {}
        self._of_ranges: list[SqliteWatch] = []
        self._want_previous = 0

    def add(self, span: tuple[str, str], from_revision: int, previous: bool) -> SqliteWatch:
        """Open a watch of the keys in `span` (start, end), which the caller ends by `remove`.

        Args:
            span: the first key of the range, and the key after it.
            from_revision: the first revision to return; 0 means from now on.
            previous: whether events include the previous value.
        """
        watch = SqliteWatch(self, span, from_revision, previous)
        self._watches_like(watch).append(watch)
        self._want_previous += previous
        return watch

    def remove(self, watch: SqliteWatch) -> None:
        """Stop delivering events to a watch, which must have been added."""
        watches = self._watches_like(watch)
        watches.remove(watch)
        self._want_previous -= watch.previous
        if not watches and watches is not self._of_ranges:
            del self._of_folders[watch.start]

    def _watches_like(self, watch: SqliteWatch) -> list[SqliteWatch]:
        folder = watch.start.endswith("/") and watch.end == prefix_end(watch.start)
        return self._of_folders.setdefault(watch.start, []) if folder else self._of_ranges

    def _watching(self, key: str) -> list[SqliteWatch]:
        watches = [watch for watch in self._of_ranges if watch.start <= key < watch.end]
        slash = key.find("/")
        while slash >= 0:
            watches += self._of_folders.get(key[: slash + 1], ())
            slash = key.find("/", slash + 1)
        return watches

    def _all(self) -> list[SqliteWatch]:
        return [*self._of_ranges, *(watch for watches in self._of_folders.values() for watch in watches)]

    def publish(self, events: list[BackendEvent], revision: int) -> None:
        """Deliver the events of a commit to the watches, and set the published revision.

        The revision is set first, because woken watches read it.
        """
        self.revision = revision
        for event in events:
            for watch in self._watching(event.key):
                watch.publish(event)

    def wants_previous(self, key: str) -> bool:
        """Return whether any watch of the key asked for previous values."""
        return self._want_previous > 0 and any(watch.previous for watch in self._watching(key))

    def close(self) -> None:
        """End every watch: their iterators raise Unavailable."""
        for watch in self._all():
            watch.close()
