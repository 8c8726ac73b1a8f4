"""`Transaction`: the table changes of writes.

A batch of writes shares one transaction, and so one commit and one disk sync.

Each operation checks its conditions before it writes, so that a rejected operation leaves no changes in the shared
transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from tetrapod.generic.storage.backend import (
    BackendEvent,
    Compacted,
    FutureRevision,
    KeyValue,
    LeaseNotFound,
    WriteResult,
)
from tetrapod.generic.storage.sqlite import reading


class Transaction:
    """An open write transaction.

    - `revision` is the latest revision of the store, including the writes of this transaction.
    - `events` are published to watches after the commit.
    - `changed` is False if the transaction wrote nothing, so that the commit needs no disk sync.

    Args:
        connection: the connection of the writer.
        revision: the latest revision of the store.
        wants_previous: returns whether the event of a key needs the previous value, because a watch asked for it.
    """

    def __init__(self, connection: sqlite3.Connection, revision: int, wants_previous: Callable[[str], bool]) -> None:
        self._connection = connection
        self._wants_previous = wants_previous
        self.revision = revision
        self.events: list[BackendEvent] = []
        self.changed = False

    def begin(self) -> None:
        """Begin the transaction in the database, which must be done before any other operation."""
        self._connection.execute("BEGIN IMMEDIATE")

    def put(self, key: str, value: bytes, expected: int, lease: int) -> WriteResult:
        """Write the value if the key's revision is `expected` (0: the key is absent).

        Otherwise nothing is written, and the result has the stored value.

        Args:
            key: the key.
            value: the new value.
            expected: the revision of the last write of the key.
            lease: the ID of the lease at whose end the key is deleted; 0 for none.

        Raises:
            LeaseNotFound: `lease` is not 0 and does not exist.
        """
        current_revision, created, _ = self._current(key)
        if current_revision != expected:
            return WriteResult(False, self.revision, reading.get(self._connection, key))
        if lease and self._connection.execute("SELECT 1 FROM leases WHERE id = ?", (lease,)).fetchone() is None:
            raise LeaseNotFound
        previous = self._previous(key, current_revision)
        revision = self._next()
        created = created or revision
        self._connection.execute(
            "INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)", (revision, key, value, created, current_revision, lease)
        )
        self._connection.execute("INSERT OR REPLACE INTO current VALUES (?, ?, ?, ?)", (key, revision, created, lease))
        self.events.append(BackendEvent(key, value, revision, previous, current_revision == 0, lease))
        return WriteResult(True, revision, None)

    def delete(self, key: str, expected: int) -> WriteResult:
        """Delete the key if it exists and its revision is `expected`. Otherwise return a failed result.

        A failed result has the stored value, or None for an absent key.
        """
        current_revision, created, lease = self._current(key)
        if current_revision != expected or not current_revision:
            return WriteResult(False, self.revision, reading.get(self._connection, key))
        previous = self._previous(key, current_revision)
        revision = self._next()
        self._connection.execute(
            "INSERT INTO revisions VALUES (?, ?, NULL, ?, ?, ?)", (revision, key, created, current_revision, lease)
        )
        self._connection.execute("DELETE FROM current WHERE key = ?", (key,))
        self.events.append(BackendEvent(key, None, revision, previous, False, lease))
        return WriteResult(True, revision, None)

    def grant(self, expires: float) -> int:
        """Create a lease that expires at the Unix time `expires`, and return its ID."""
        self.changed = True
        cursor = self._connection.execute("INSERT INTO leases (expires) VALUES (?)", (expires,))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def next_expiry(self) -> float | None:
        """Return the Unix time at which the first lease expires, or None without leases."""
        row = self._connection.execute("SELECT min(expires) FROM leases").fetchone()
        return None if row[0] is None else float(row[0])

    def expire(self, now: float, limit: int) -> bool:
        """Delete keys of leases that expired before the Unix time `now`, at most `limit`; then the leases themselves.

        Return True if it must be called again, because there may be more keys.
        """
        ended = "SELECT id FROM leases WHERE expires <= ?"
        rows = self._connection.execute(
            f"SELECT key, revision FROM current WHERE lease IN ({ended}) LIMIT ?", (now, limit)
        ).fetchall()
        for key, revision in rows:
            self.delete(key, revision)
        if len(rows) == limit:
            return True
        if self._connection.execute("DELETE FROM leases WHERE expires <= ?", (now,)).rowcount:
            self.changed = True
        return False

    def compact(self, target: int, step: int, size: int) -> bool:
        """Discard the history before `target`, advancing by a part of it. Return True if it must be called again.

        Args:
            target: the first revision that is kept.
            step: the maximum number of revisions by which to advance.
            size: the maximum number of bytes of discarded values, unless the first one is larger. SQLite may write
                every page that it frees.

        Raises:
            Compacted: `target` has been compacted.
            FutureRevision: `target` has not been reached.
        """
        compacted = reading.compacted_revision(self._connection)
        if target <= compacted:
            raise Compacted(compacted)
        if target > self.revision:
            raise FutureRevision(f"revision {target} is in the future, the store is at {self.revision}")
        until = self._end_of_step(compacted, min(target, compacted + step), size)
        superseded = "SELECT previous FROM revisions WHERE revision > ? AND revision <= ? AND previous != 0"
        self._connection.execute(f"DELETE FROM revisions WHERE revision IN ({superseded})", (compacted, until))
        self._connection.execute(
            "DELETE FROM revisions WHERE revision >= ? AND revision < ? AND value IS NULL", (compacted, until)
        )
        self._connection.execute("UPDATE compaction SET revision = ?", (until,))
        self.changed = True
        return until < target

    def _end_of_step(self, compacted: int, until: int, size: int) -> int:
        """Return the revision up to which at most `size` bytes of values are superseded; at least one revision."""
        rows = self._connection.execute(
            "SELECT n.revision, length(p.value) FROM revisions n JOIN revisions p ON p.revision = n.previous "
            "WHERE n.revision > ? AND n.revision <= ? ORDER BY n.revision",
            (compacted, until),
        )
        total = 0
        for revision, length in rows:
            total += length or 0
            if total > size:
                return max(compacted + 1, int(revision) - 1)
        return until

    def _current(self, key: str) -> tuple[int, int, int]:
        row = self._connection.execute("SELECT revision, created, lease FROM current WHERE key = ?", (key,)).fetchone()
        return row if row is not None else (0, 0, 0)

    def _previous(self, key: str, revision: int) -> KeyValue | None:
        return reading.get(self._connection, key) if revision and self._wants_previous(key) else None

    def _next(self) -> int:
        self.changed = True
        self.revision += 1
        return self.revision
