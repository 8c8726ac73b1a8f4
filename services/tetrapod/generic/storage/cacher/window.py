"""`Window`: the recent changes of a resource.

With them, watches can start at an older revision, and pages of a list can be computed for it. A change is kept for at
least 75 seconds, unless there are more than `MOST` changes, or the states that they replaced have more than
`MOST_BYTES`. Watches that start at an older revision read the changes from the store.
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
from tetrapod.generic.storage.entry import Predicate
from tetrapod.generic.storage.watch import WatchEvent

FRESH_SECONDS: Final = 75.0
FEWEST: Final = 100
MOST: Final = 10_000
MOST_BYTES: Final = 128 << 20
"""Ten times what a busy cluster replaces in 75 seconds. A user who writes an object of a megabyte again and again would
otherwise fill the memory.
"""


class Change(msgspec.Struct, gc=False, eq=False):
    """One change of one key. Its watch events are created once and shared by all watches.

    Attributes:
        key: the key, relative to the resource's prefix.
        entry: the new state; None if the object was deleted.
        previous: the former state; None if the object was created.
        revision: the revision of the change.
        at: the time (`time.monotonic`) at which it was applied.
    """

    key: str
    entry: StoredEntry | None
    previous: StoredEntry | None
    revision: int
    at: float = msgspec.field(default_factory=time.monotonic)
    _added: WatchEvent | None = None
    _modified: WatchEvent | None = None
    _deleted: WatchEvent | None = None

    def event(self, predicate: Predicate) -> WatchEvent | None:
        """Return the event for a watch with these selectors, or None if neither old nor new object matches them.

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
    """The recent changes of a resource: all changes after the revision `start`, at most `most`.

    `capacity` imitates the size of upstream's ring buffer for its metric: it doubles when full, and is halved when
    mostly empty.

    Attributes:
        size: the bytes of the replaced and deleted states.

    Args:
        start: the current revision; the window contains the changes that are appended from now on.
        most: the number of changes to keep; the oldest are dropped.
        counters: count how often `capacity` changes; None does not report that.
    """

    def __init__(self, start: int, *, most: int = MOST, counters: CacheCounters | None = None) -> None:
        self.start = start
        self.capacity = FEWEST
        self._counters = counters or CacheCounters(("", ""))
        self._most = most
        self._changes: deque[Change] = deque()
        self.size = 0

    def append(self, change: Change) -> None:
        """Add the latest change, and drop the oldest ones beyond the maximum number, `MOST_BYTES` or 75 seconds.

        The last `FEWEST` are kept regardless of their age. Dropping changes advances `start`.
        """
        self._changes.append(change)
        self.size += _replaced(change)
        if len(self._changes) > self.capacity:
            self.capacity *= 2
            self._counters.capacity_increases += 1
        oldest = self._changes[0]
        while (
            len(self._changes) > self._most
            or (self.size > MOST_BYTES and oldest is not change)
            or (len(self._changes) > FEWEST and change.at - oldest.at > FRESH_SECONDS)
        ):
            self._changes.popleft()
            self.size -= _replaced(oldest)
            self.start = oldest.revision
            oldest = self._changes[0]
            if len(self._changes) * 4 < self.capacity > FEWEST:
                self.capacity //= 2
                self._counters.capacity_decreases += 1

    @property
    def free(self) -> int:
        """The number of older changes that can be added before the oldest one without exceeding the maximum."""
        return max(self._most - len(self._changes), 0)

    def extend(self, changes: Sequence[Change], start: int) -> None:
        """Add older changes in front: every change after the revision `start` up to the window's old start."""
        self._changes.extendleft(reversed(changes))
        self.size += sum(map(_replaced, changes))
        self.start = start
        while len(self._changes) > self.capacity:
            self.capacity *= 2
            self._counters.capacity_increases += 1

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, oldest first. `revision` must not be less than `start`."""
        changes = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def undo(self, revision: int) -> dict[str, StoredEntry | None] | None:
        """Return the state at `revision` of each key that has changed since, from which an earlier list is computed.

        Returns:
            The former entry by key; None for a key that did not exist at `revision`. Instead of the dictionary, None if
                the window does not reach back to `revision`.
        """
        if revision < self.start:
            return None
        previous_entries: dict[str, StoredEntry | None] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            previous_entries[change.key] = change.previous
        return previous_entries


def _replaced(change: Change) -> int:
    """Return the bytes of the state that a change replaced or deleted. Only the window still refers to it."""
    return 0 if change.previous is None else change.previous.size
