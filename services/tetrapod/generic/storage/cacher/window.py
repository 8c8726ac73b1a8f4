"""`Window`: the latest changes of a resource, kept so that watches can begin at an older revision and pages be read at one.

Follows the event window of k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: a change stays for at least 75 seconds, unless
there are very many.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

import msgspec

from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.tally import Tally
from tetrapod.generic.storage.interface import Predicate, WatchEvent

FRESH_SECONDS: Final = 75.0
FEWEST: Final = 100
MOST: Final = 10_000


class Change(msgspec.Struct, gc=False, eq=False):
    """One change of one key. The events that watches get of it are made once and shared."""

    key: str
    entry: StoredEntry | None
    previous: StoredEntry | None
    revision: int
    at: float = msgspec.field(default_factory=time.monotonic)
    _added: WatchEvent | None = None
    _modified: WatchEvent | None = None
    _deleted: WatchEvent | None = None

    def event(self, predicate: Predicate) -> WatchEvent | None:
        """What a watch with this predicate sees: an object that ceases to match is deleted, one that starts to is added."""
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
            self._added = WatchEvent("ADDED", self.entry, self.revision)
        return self._added

    def _modify(self) -> WatchEvent:
        if self._modified is None:
            self._modified = WatchEvent("MODIFIED", self.entry, self.revision)
        return self._modified

    def _delete(self) -> WatchEvent:
        if self._deleted is None:
            assert self.previous is not None
            self._deleted = WatchEvent("DELETED", self.previous.as_deleted(self.revision), self.revision)
        return self._deleted


class Window:
    """Every change after `start` is here. `capacity` is that of upstream's array: it doubles when full, and is halved when idle."""

    def __init__(self, start: int, *, most: int = MOST, tally: Tally | None = None) -> None:
        self.start = start
        self.capacity = FEWEST
        self._tally = tally or Tally(("", ""))
        self._most = most
        self._changes: deque[Change] = deque()

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self.capacity:
            self.capacity *= 2
            self._tally.capacity_increases += 1
        oldest = self._changes[0]
        while len(self._changes) > self._most or (len(self._changes) > FEWEST and change.at - oldest.at > FRESH_SECONDS):
            self.start = self._changes.popleft().revision
            oldest = self._changes[0]
            if len(self._changes) * 4 < self.capacity > FEWEST:
                self.capacity //= 2
                self._tally.capacity_decreases += 1

    def since(self, revision: int) -> list[Change]:
        """Changes after `revision`, which is not before `start`."""
        changes = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def undo(self, revision: int) -> dict[str, StoredEntry | None] | None:
        """What to put over the present state to have that of `revision`. None: too long ago to tell."""
        if revision < self.start:
            return None
        before: dict[str, StoredEntry | None] = {}
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            before[change.key] = change.previous
        return before
