"""Reads of the embedded store: single keys, current ranges, ranges at a past revision, and history for watches.

These are plain functions over a connection. Callers run them in one read transaction.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from tetrapod.generic.storage.backend import BackendEvent, Compacted, FutureRevision, KeyValue, Range
from tetrapod.generic.storage.sqlite.schema import FIRST_REVISION


class RangeQuery(NamedTuple):
    """The arguments of a `Backend.range` call.

    Attributes:
        start: the first key of the range.
        end: the key after the range.
        limit: the maximum number of keys; 0 for all.
        revision: the revision at which to read; 0 for the current one.
        keys_only: whether to leave the values empty.
        count_only: whether to return no keys, only their number.
        counted: whether to count the keys of the whole range.
    """

    start: str
    end: str
    limit: int
    revision: int
    keys_only: bool
    count_only: bool
    counted: bool = True


def last_revision(connection: sqlite3.Connection) -> int:
    """Return the current revision of the store; `FIRST_REVISION` if nothing was ever written."""
    return int(connection.execute("SELECT max(revision) FROM revisions").fetchone()[0] or FIRST_REVISION)


def compacted_revision(connection: sqlite3.Connection) -> int:
    """Return the revision of the last compaction, 0 if the store was never compacted."""
    return int(connection.execute("SELECT revision FROM compaction").fetchone()[0])


def get(connection: sqlite3.Connection, key: str) -> KeyValue | None:
    """Return the current value of a key, or None if it does not exist."""
    row = connection.execute(
        "SELECT r.value, c.revision, c.created, c.lease FROM current c JOIN revisions r USING (revision) WHERE c.key "
        "= ?",
        (key,),
    ).fetchone()
    return None if row is None else KeyValue(key, *row)


def read_range(connection: sqlite3.Connection, query: RangeQuery) -> Range:
    """Read a range at the current or a past revision.

    Raises:
        FutureRevision: the query's revision has not been reached.
        Compacted: the query's revision is older than the history.
    """
    now = last_revision(connection)
    if query.revision in {0, now}:
        return _current_range(connection, query, now)
    if query.revision > now:
        raise FutureRevision(f"revision {query.revision} is in the future, the store is at {now}")
    if query.revision < (compacted := compacted_revision(connection)):
        raise Compacted(compacted)
    return _past_range(connection, query, now)


def _current_range(connection: sqlite3.Connection, query: RangeQuery, now: int) -> Range:
    span = (query.start, query.end)
    total = 0
    if query.counted or query.count_only:
        total = connection.execute("SELECT count(*) FROM current WHERE key >= ? AND key < ?", span).fetchone()[0]
    if query.count_only:
        return Range((), False, total, now)
    value, join = ("x''", "") if query.keys_only else ("r.value", "JOIN revisions r USING (revision)")
    rows = connection.execute(
        f"SELECT c.key, {value}, c.revision, c.created, c.lease FROM current c {join} "
        "WHERE c.key >= ? AND c.key < ? ORDER BY c.key LIMIT ?",
        (*span, query.limit + 1 if query.limit else -1),
    )
    return _page(rows, query.limit, total, now)


LATEST = (
    "\n(SELECT key AS latest_key, max(revision) AS latest FROM revisions "
    "WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key ORDER BY key)\n"
    "CROSS JOIN revisions ON revision = latest WHERE value IS NOT NULL\n"
)
"""The latest revision of each key of a range that is not deleted, as an SQL join. SQLite evaluates the subquery as a
coroutine in index order, so a limit ends the scan early. (A plain JOIN materializes it.)
"""


def _past_range(connection: sqlite3.Connection, query: RangeQuery, now: int) -> Range:
    span = (query.start, query.end, query.revision)
    total = 0
    if query.counted or query.count_only:
        total = connection.execute(f"SELECT count(*) FROM {LATEST}", span).fetchone()[0]
    if query.count_only:
        return Range((), False, total, now)
    value = "x''" if query.keys_only else "value"
    rows = connection.execute(
        f"SELECT key, {value}, revision, created, lease FROM {LATEST} LIMIT ?",
        (*span, query.limit + 1 if query.limit else -1),
    )
    return _page(rows, query.limit, total, now)


def _page(rows: sqlite3.Cursor, limit: int, total: int, now: int) -> Range:
    """Return the rows as a Range.

    Args:
        rows: one more than `limit` if there are more; the extra row is not returned.
        total: the number of keys of the whole range.
        now: the current revision.
    """
    kvs = list(map(KeyValue._make, rows))
    more = 0 < limit < len(kvs)
    if more:
        kvs.pop()
    return Range(kvs, more, total, now)


def history(
    connection: sqlite3.Connection, span: tuple[str, str], first: int, last: int, limit: int
) -> list[BackendEvent]:
    """Return the events of the keys in `span` (start, end), from revision `first` to `last`, inclusive, in order.

    Args:
        limit: the maximum number of events; the caller reads on after the last one.

    Raises:
        Compacted: `first` is older than the history.
    """
    if first < (compacted := compacted_revision(connection)):
        raise Compacted(compacted)
    rows = connection.execute(
        "SELECT n.key, n.value, n.revision, n.created, n.lease, p.value, p.revision, p.created, p.lease "
        "FROM revisions n LEFT JOIN revisions p ON p.revision = n.previous "
        "WHERE n.revision BETWEEN ? AND ? AND n.key >= ? AND n.key < ? ORDER BY n.revision LIMIT ?",
        (first, last, *span, limit),
    )
    return [_event(row) for row in rows]


def _event(row: tuple[str, bytes | None, int, int, int, bytes | None, int, int, int]) -> BackendEvent:
    key, value, revision, created, lease, old, *about_old = row
    previous = None if old is None else KeyValue(key, old, *about_old)
    return BackendEvent(key, value, revision, previous, value is not None and created == revision, lease)
