"""Writes contents into a store that has none yet, and sees that resource versions never go backwards.

Whoever knew the source may have seen later revisions than what is restored, or hold watches: so the new store begins above, and what was
before is compacted. A watch from then is told 410 Gone, and its client lists anew (etcdutl's --bump-revision and --mark-compacted).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tetrapod.generic.storage.backend import Compacted
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.keys import prefix_end
from tetrapod.generic.storage.sqlite.lock import DatabaseLock
from tetrapod.generic.storage.sqlite.schema import open_connection, prepare

BUMP: Final = 1_000_000
"""Above what was seen of the source since: more writes than anybody makes between a backup and the end of its source."""
MOST_REVISIONS: Final = 20_000_000
_AT_ONCE: Final = 64
_COUNTER: Final = "tetrapod/revisions/"  # outside of every prefix


def write_sqlite(database: Path, prefix: str, contents: Contents, bump: int = BUMP) -> int:
    """A new database; objects keep their resource versions. Returns its revision. Raises BackupError, DatabaseInUse."""
    database.parent.mkdir(parents=True, exist_ok=True)
    lock = DatabaseLock(database)
    try:
        if database.exists():
            raise BackupError(f"{database} exists already; restore into another directory, or move it away")
        partial = database.with_name(f".{database.name}.partial")
        partial.unlink(missing_ok=True)
        try:
            revision = _fill(partial, prefix.rstrip("/") + "/", contents, bump)
            os.replace(partial, database)
        finally:
            for left in (partial, Path(f"{partial}-wal"), Path(f"{partial}-shm")):
                left.unlink(missing_ok=True)
        return revision
    finally:
        lock.release()


def _fill(path: Path, start: str, contents: Contents, bump: int) -> int:
    connection = open_connection(str(path))
    try:
        prepare(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        last = contents.revision + bump
        used: set[int] = set()
        now = time.time()
        for item in contents.items:
            revision = item.revision
            if revision in used:  # several keys of one transaction of etcd: a row has one
                last += 1
                revision = last
            used.add(revision)
            lease = 0
            if item.ttl is not None:
                lease = connection.execute("INSERT INTO leases (expires) VALUES (?)", (now + item.ttl,)).lastrowid or 0
            key, created = start + item.key, min(item.created, revision)
            connection.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, 0, ?)", (revision, key, item.value, created, lease))
            connection.execute("INSERT INTO current VALUES (?, ?, ?, ?)", (key, revision, created, lease))
        last += 1
        connection.execute("INSERT INTO revisions VALUES (?, '', NULL, ?, 0, 0)", (last, last))  # as of a key that came and went
        connection.execute("UPDATE compaction SET revision = ?", (last,))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
        return last
    except sqlite3.Error as error:
        raise BackupError(f"{path} cannot be written: {error}") from None
    finally:
        connection.close()


async def write_etcd(backend: EtcdBackend, prefix: str, contents: Contents) -> int:
    """Into an etcd that has nothing below the prefix; objects get new resource versions, above all of the source's. Returns the revision.

    Raises BackupError, Unavailable.
    """
    start = prefix.rstrip("/") + "/"
    there = await backend.range(start, prefix_end(start), count_only=True)
    if there.total:
        raise BackupError(f"etcd has {there.total} keys below {start} already; use an empty etcd, or another --etcd-prefix")
    await _raise_revision(backend, contents.revision)
    ordered = sorted(contents.items, key=lambda item: item.revision)
    for at in range(0, len(ordered), _AT_ONCE):
        await asyncio.gather(*(_put(backend, start, item) for item in ordered[at : at + _AT_ONCE]))
    revision = await backend.revision()
    with contextlib.suppress(Compacted):  # somebody else did
        await backend.compact(revision)
    return revision


async def _put(backend: EtcdBackend, start: str, item: Item) -> None:
    lease = await backend.grant_lease(max(1, round(item.ttl))) if item.ttl is not None else 0
    result = await backend.put_if(start + item.key, item.value, 0, lease=lease)
    if not result.succeeded:
        raise BackupError(f"somebody else wrote {start}{item.key} meanwhile; stop what uses this etcd")


async def _raise_revision(backend: EtcdBackend, above: int) -> None:
    """etcd counts writes: so many are made, to keys of no meaning."""
    missing = above - await backend.revision()
    if missing > MOST_REVISIONS:
        raise BackupError(
            f"the source is at revision {above}, etcd would take {missing} writes to get there; start it from "
            "`etcdutl snapshot restore --bump-revision … --mark-compacted`"
        )
    if missing > 0:
        await asyncio.gather(*(_count(backend, number, -(-missing // _AT_ONCE)) for number in range(_AT_ONCE)))


async def _count(backend: EtcdBackend, number: int, times: int) -> None:
    key, expected = f"{_COUNTER}{number}", 0
    for _ in range(times):
        result = await backend.put_if(key, b"", expected)
        if not result.succeeded:  # left by a run that was cut off
            expected = result.current.mod_revision if result.current is not None else 0
            continue
        expected = result.revision
    if expected:
        await backend.delete_if(key, expected)


def differences(wanted: Sequence[Item], found: Sequence[Item]) -> list[str]:
    """Keys whose values are not the same, and those that only one has. What goes by itself may have gone."""
    values = {item.key: item.value for item in found}
    short_lived = {item.key for item in wanted if item.ttl is not None}
    kept = {item.key: item.value for item in wanted}
    differ = [key for key, value in kept.items() if values.get(key) != value and not (key in short_lived and key not in values)]
    return differ + sorted(values.keys() - kept.keys())
