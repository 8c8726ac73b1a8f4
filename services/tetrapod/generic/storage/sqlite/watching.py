"""Watches of the embedded store: a cursor over history that follows commits as they happen.

A watch that has fallen behind, or begins in the past, reads the revisions table; one that is in step is handed the events of
each commit. Nobody waits for a slow one: beyond `QUEUE` its events are dropped and it goes back to reading history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from tetrapod.generic.storage.backend import BackendEvent, WatchBatch
from tetrapod.generic.storage.keys import prefix_end
from tetrapod.generic.unavailable import Unavailable

QUEUE = 8192
CHUNK = 1000

ReadHistory = Callable[[tuple[str, str], int, int, int], Awaitable[list[BackendEvent]]]


class SqliteWatch:
    """One watch of [start, end). `hub.revision` is the last one that was published."""

    def __init__(self, hub: WatchHub, span: tuple[str, str], from_revision: int, previous: bool) -> None:
        self._hub = hub
        self.start, self.end = span
        self.previous = previous
        self._next = from_revision if from_revision > 0 else hub.revision + 1
        self._lagging = self._next <= hub.revision
        self._queue: deque[BackendEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._poked = False
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
            elif (batch := self.at_hand()) is not None:
                return batch
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def at_hand(self) -> WatchBatch | None:
        if self._closed or self._lagging:
            return None
        if self._queue:
            events = list(self._queue)
            self._queue.clear()
            return WatchBatch(events, events[-1].revision)
        if self._poked:
            self._poked = False
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

    def poke(self) -> None:
        self._poked = True
        self.wake()

    def close(self) -> None:
        self._closed = True
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WatchHub:
    """All open watches. Most are of a folder, `/registry/pods/`, and are found by the folders of a key: there is one for each resource."""

    def __init__(self, revision: int, history: ReadHistory) -> None:
        self.revision = revision
        self.history = history
        self._of_folders: dict[str, list[SqliteWatch]] = {}
        self._others: list[SqliteWatch] = []
        self._want_previous = 0

    def add(self, span: tuple[str, str], from_revision: int, previous: bool) -> SqliteWatch:
        watch = SqliteWatch(self, span, from_revision, previous)
        self._beside(watch).append(watch)
        self._want_previous += previous
        return watch

    def remove(self, watch: SqliteWatch) -> None:
        beside = self._beside(watch)
        beside.remove(watch)
        self._want_previous -= watch.previous
        if not beside and beside is not self._others:
            del self._of_folders[watch.start]

    def _beside(self, watch: SqliteWatch) -> list[SqliteWatch]:
        folder = watch.start.endswith("/") and watch.end == prefix_end(watch.start)
        return self._of_folders.setdefault(watch.start, []) if folder else self._others

    def _watching(self, key: str) -> list[SqliteWatch]:
        found = [watch for watch in self._others if watch.start <= key < watch.end]
        slash = key.find("/")
        while slash >= 0:
            found += self._of_folders.get(key[: slash + 1], ())
            slash = key.find("/", slash + 1)
        return found

    def _all(self) -> list[SqliteWatch]:
        return [*self._others, *(watch for watches in self._of_folders.values() for watch in watches)]

    def publish(self, events: list[BackendEvent], revision: int) -> None:
        """Tell every watch of a commit. `revision` is set first: a watch that is woken sees it."""
        self.revision = revision
        for event in events:
            for watch in self._watching(event.key):
                watch.publish(event)

    def wants_previous(self, key: str) -> bool:
        return self._want_previous > 0 and any(watch.previous for watch in self._watching(key))

    def request_progress(self) -> None:
        for watch in self._all():
            watch.poke()

    def close(self) -> None:
        for watch in self._all():
            watch.close()
