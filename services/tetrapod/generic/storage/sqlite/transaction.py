"""What one write does to the tables. A batch of writes shares one `Transaction`, and so one commit and one sync of the disk.

Each operation looks first and writes after, so that one that is refused leaves nothing behind in the shared transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from tetrapod.generic.storage.backend import BackendEvent, Compacted, FutureRevision, KeyValue, LeaseNotFound, WriteResult
from tetrapod.generic.storage.sqlite import reading


class Transaction:
    """An open write transaction at `revision`; `events` are told to watches once it is committed."""

    def __init__(self, connection: sqlite3.Connection, revision: int, wants_previous: Callable[[str], bool]) -> None:
        self._connection = connection
        self._wants_previous = wants_previous
        self.revision = revision
        self.events: list[BackendEvent] = []
        self.changed = False

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def put(self, key: str, value: bytes, expected: int, lease: int) -> WriteResult:
        found, created, _ = self._current(key)
        if found != expected:
            return WriteResult(False, self.revision, reading.get(self._connection, key))
        if lease and self._connection.execute("SELECT 1 FROM leases WHERE id = ?", (lease,)).fetchone() is None:
            raise LeaseNotFound
        previous = self._previous(key, found)
        revision = self._next()
        created = created or revision
        self._connection.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)", (revision, key, value, created, found, lease))
        self._connection.execute("INSERT OR REPLACE INTO current VALUES (?, ?, ?, ?)", (key, revision, created, lease))
        self.events.append(BackendEvent(key, value, revision, previous, found == 0, lease))
        return WriteResult(True, revision, None)

    def delete(self, key: str, expected: int) -> WriteResult:
        found, created, lease = self._current(key)
        if found != expected or not found:
            return WriteResult(False, self.revision, reading.get(self._connection, key))
        previous = self._previous(key, found)
        revision = self._next()
        self._connection.execute("INSERT INTO revisions VALUES (?, ?, NULL, ?, ?, ?)", (revision, key, created, found, lease))
        self._connection.execute("DELETE FROM current WHERE key = ?", (key,))
        self.events.append(BackendEvent(key, None, revision, previous, False, lease))
        return WriteResult(True, revision, None)

    def grant(self, expires: float) -> int:
        self.changed = True
        cursor = self._connection.execute("INSERT INTO leases (expires) VALUES (?)", (expires,))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def next_expiry(self) -> float | None:
        row = self._connection.execute("SELECT min(expires) FROM leases").fetchone()
        return None if row[0] is None else float(row[0])

    def expire(self, now: float, limit: int) -> bool:
        """Delete keys of ended leases, at most `limit`, and leases left without keys. True: there may be more."""
        ended = "SELECT id FROM leases WHERE expires <= ?"
        rows = self._connection.execute(f"SELECT key, revision FROM current WHERE lease IN ({ended}) LIMIT ?", (now, limit)).fetchall()
        for key, revision in rows:
            self.delete(key, revision)
        if len(rows) == limit:
            return True
        if self._connection.execute("DELETE FROM leases WHERE expires <= ?", (now,)).rowcount:
            self.changed = True
        return False

    def compact(self, target: int, step: int) -> bool:
        """Forget history before `target`, over at most `step` revisions. True: call again. Raises Compacted, FutureRevision."""
        compacted = reading.compacted_revision(self._connection)
        if target <= compacted:
            raise Compacted(compacted)
        if target > self.revision:
            raise FutureRevision(f"revision {target} is in the future, the store is at {self.revision}")
        until = min(target, compacted + step)
        superseded = "SELECT previous FROM revisions WHERE revision > ? AND revision <= ? AND previous != 0"
        self._connection.execute(f"DELETE FROM revisions WHERE revision IN ({superseded})", (compacted, until))
        self._connection.execute("DELETE FROM revisions WHERE revision >= ? AND revision < ? AND value IS NULL", (compacted, until))
        self._connection.execute("UPDATE compaction SET revision = ?", (until,))
        self.changed = True
        return until < target

    def _current(self, key: str) -> tuple[int, int, int]:
        row = self._connection.execute("SELECT revision, created, lease FROM current WHERE key = ?", (key,)).fetchone()
        return row if row is not None else (0, 0, 0)

    def _previous(self, key: str, found: int) -> KeyValue | None:
        return reading.get(self._connection, key) if found and self._wants_previous(key) else None

    def _next(self) -> int:
        self.changed = True
        self.revision += 1
        return self.revision
