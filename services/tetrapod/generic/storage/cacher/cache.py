"""`Cache`: what is known of one resource: its entries, the window of changes, and who waits for which revision. No I/O here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from tetrapod.generic.storage.backend import BackendEvent
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.packed import packed
from tetrapod.generic.storage.cacher.tally import Tally
from tetrapod.generic.storage.cacher.watching import Fanout
from tetrapod.generic.storage.cacher.window import MOST, Change, Window
from tetrapod.generic.storage.encoding import CorruptObject

log = logging.getLogger(__name__)


class Cache:
    """Filled by a Reflector. `revision`: every change up to it has been applied."""

    def __init__(self, prefix_length: int, tally: Tally, *, window: int = MOST, packed: bool = False) -> None:
        self._prefix_length = prefix_length
        self.tally = tally
        self._window_size = window
        self._packed = packed
        self.filled = False
        self.revision = 0
        self.entries = Entries()
        self.window = Window(0, most=window, tally=tally)
        self.fanout = Fanout(lambda: self.revision, tally)
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []

    def replace(self, entries: Iterable[StoredEntry], revision: int) -> None:
        """Begin anew from a list. Open watches are ended: what lies between is unknown, so their clients must find out."""
        self.entries = Entries(map(packed, entries) if self._packed else entries)
        self.window = Window(revision, most=self._window_size, tally=self.tally)
        self.filled = True
        self.fanout.close()
        self.advance(revision)

    def forget(self) -> None:
        """What there is can no longer be kept up to date, nor be read anew for now. Open watches are ended."""
        self.filled = False
        self.fanout.close()

    def apply(self, events: Sequence[BackendEvent]) -> None:
        if not events:
            self.tally.bookmarks += 1
            self.tally.dispatched += 1
            return
        came = time.monotonic()
        self.tally.received += len(events)
        changes = []
        for event in events:
            if event.revision > self.revision and (change := self._change(event)) is not None:
                self.window.append(change)
                changes.append(change)
        if changes:
            self.revision = max(self.revision, changes[-1].revision)
            self.tally.dispatched += len(changes)
            self.fanout.deliver(changes, came)
            for change in changes:
                if change.previous is not None:
                    change.previous.cool()  # nobody is likely to look into it again

    def _change(self, event: BackendEvent) -> Change | None:
        key = event.key[self._prefix_length :]
        if event.value is None:
            previous = self.entries.remove(key)
            return None if previous is None else Change(key, None, previous, event.revision)
        try:
            entry = StoredEntry.stored(key, event.value, event.revision, event.lease)
        except CorruptObject as error:
            log.error("%s cannot be served: %s", event.key, error)
            self.tally.undecodable += 1
            return None
        if self._packed:
            entry = packed(entry)
        return Change(key, entry, self.entries.put(entry), event.revision)

    def advance(self, revision: int) -> None:
        """Everything up to `revision` has been applied: wake who waits for it."""
        self.revision = max(self.revision, revision)
        while self._waiters and self._waiters[0][0] <= self.revision:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)

    def reached(self, revision: int) -> asyncio.Future[None]:
        """A future that is done once `revision` has been applied."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiters, (revision, id(future), future))
        return future

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for a revision."""
        while self._waiters and self._waiters[0][2].done():
            heappop(self._waiters)
        return bool(self._waiters)
