"""`Window`: the recent changes of a resource.

They are kept so that watches can start at, and pages be read at, an older revision. A change is kept for at least 75
seconds, unless there are more than `MOST` changes.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache.go
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from tetrapod.generic.storage.cacher.counters import CacheCounters
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.interface import Predicate, WatchEvent

FRESH_SECONDS: Final = 75.0
FEWEST: Final = 100
MOST: Final = 10_000


class Change(msgspec.Struct, gc=False, eq=False):
    """One change of one key. Its watch events are created once and shared by all watches."""

    key: str
    entry: StoredEntry | None
    previous: StoredEntry | None
    revision: int
    at: float = msgspec.field(default_factory=time.monotonic)
    _added: WatchEvent | None = None
    _modified: WatchEvent | None = None
    _deleted: WatchEvent | None = None

    def event(self, predicate: Predicate) -> WatchEvent | None:
        """Return the event for a watch with this predicate, or None.

        An object that no longer matches is DELETED for the watch; one that begins to match is ADDED.
        """
        if predicate.empty:
            matched, matches = self.previous is not None, self.entry is not None
        else:
            matched = self.previous is not None and predicate.matches(self.previous)
            matches = self.entry is not None and predicate.matches(self.entry)
        if matches:
            return self._modify() if matched else self._add()
        return self._delete() if matched else None

    def _add(self) -> WatchEvent:
        if self._added is None:
            self._added = WatchEvent("ADDED", self.entry, self.revision, previous=self.previous)
        return self._added

    def _modify(self) -> WatchEvent:
        if self._modified is None:
            self._modified = WatchEvent("MODIFIED", self.entry, self.revision, previous=self.previous)
        return self._modified

    def _delete(self) -> WatchEvent:
        if self._deleted is None:
            assert self.previous is not None
            self._deleted = WatchEvent("DELETED", self.previous.as_deleted(self.revision), self.revision)
        return self._deleted


class Window:
    """All changes after the revision `start`.

    `capacity` mimics the size of upstream's ring buffer for metrics: it doubles when full, and is halved when mostly
    empty.
    """

    def __init__(self, start: int, *, most: int = MOST, counters: CacheCounters | None = None) -> None:
        self.start = start
        self.capacity = FEWEST
        self._counters = counters or CacheCounters(("", ""))
        self._most = most
        self._changes: deque[Change] = deque()

    def append(self, change: Change) -> None:
        """Add the latest change and drop those that are too old or too many."""
        self._changes.append(change)
        if len(self._changes) > self.capacity:
            self.capacity *= 2
            self._counters.capacity_increases += 1
        oldest = self._changes[0]
        while len(self._changes) > self._most or (
            len(self._changes) > FEWEST and change.at - oldest.at > FRESH_SECONDS
        ):
            self.start = self._changes.popleft().revision
            oldest = self._changes[0]
            if len(self._changes) * 4 < self.capacity > FEWEST:
                self.capacity //= 2
                self._counters.capacity_decreases += 1

    @property
    def free(self) -> int:
        """The number of changes that still fit."""
        return max(self._most - len(self._changes), 0)

    def extend(self, changes: Sequence[Change], start: int) -> None:
        """Prepend older changes: every change between `start` and the present start."""
        self._changes.extendleft(reversed(changes))
        self.start = start
        while len(self._changes) > self.capacity:
            self.capacity *= 2
            self._counters.capacity_increases += 1

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, which must not be before `start`."""
        changes = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def undo(self, revision: int) -> dict[str, StoredEntry | None] | None:
        """Return the entries to restore to get from the current state to that of `revision`.

        An entry of None means that the key did not exist. The result is None if the window does not reach back to
        `revision`.
        """
        if revision < self.start:
            return None
        previous_entries: dict[str, StoredEntry | None] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            previous_entries[change.key] = change.previous
        return previous_entries
