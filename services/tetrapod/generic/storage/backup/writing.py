"""Writes contents into an empty store, so that resource versions never go backwards.

Clients may have seen later revisions of the source than the backup contains, and may hold watches. The new store
therefore starts at a higher revision, and everything before is compacted: a watch from an older version gets 410
Gone, and its client lists again (as with etcdutl's --bump-revision and --mark-compacted).
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

from tetrapod.generic.storage.backend import Compacted, RequestTooLarge, prefix_end
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.sqlite.lock import DatabaseLock
from tetrapod.generic.storage.sqlite.schema import open_connection, prepare

BUMP: Final = 1_000_000
"""The number that is added to the revision of the source, so that resource versions never go backwards. It must exceed
the writes to the source between the backup and the end of its use.
"""
MOST_REVISIONS: Final = 20_000_000
_AT_ONCE: Final = 64
_COUNTER: Final = "tetrapod/revisions/"  # outside of every prefix


def write_sqlite(database: Path, prefix: str, contents: Contents, bump: int = BUMP) -> int:
    """Create a database with these contents and return its revision.

    Objects keep their resource versions, except where etcd wrote several objects at one.

    Args:
        database: the file, which must not exist; it appears only when it is complete. Missing directories are created.
        prefix: the prefix of the new keys.
        bump: the revision of the database is at least this much higher than that of the contents.

    Raises:
        BackupError: the database exists or cannot be written.
        DatabaseInUse: a server has the database open.
        OSError: the directory or the lock file cannot be created.
    """
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
    try:
        with contextlib.closing(open_connection(str(path))) as connection:
            return _insert(connection, path, start, contents, bump)
    except sqlite3.Error as error:
        raise BackupError(f"{path} cannot be written: {error}") from None


def _insert(connection: sqlite3.Connection, path: Path, start: str, contents: Contents, bump: int) -> int:
    prepare(connection, path)
    connection.execute("BEGIN IMMEDIATE")
    last = contents.revision + bump
    used: set[int] = set()
    now = time.time()
    for item in contents.items:
        revision = item.revision
        if revision in used:  # an etcd transaction may write several keys at one revision; a row here needs its own
            last += 1
            revision = last
        used.add(revision)
        lease = 0
        if item.ttl is not None:
            lease = connection.execute("INSERT INTO leases (expires) VALUES (?)", (now + item.ttl,)).lastrowid or 0
        key, created = start + item.key, min(item.created, revision)
        connection.execute(
            "INSERT INTO revisions VALUES (?, ?, ?, ?, 0, ?)", (revision, key, item.value, created, lease)
        )
        connection.execute("INSERT INTO current VALUES (?, ?, ?, ?)", (key, revision, created, lease))
    last += 1
    # The row of a deletion raises the store's revision to `last`.
    connection.execute("INSERT INTO revisions VALUES (?, '', NULL, ?, 0, 0)", (last, last))
    connection.execute("UPDATE compaction SET revision = ?", (last,))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    return last


async def write_etcd(backend: EtcdBackend, prefix: str, contents: Contents) -> int:
    """Write the contents to etcd, which must have no keys below the prefix, and return etcd's revision afterwards.

    Objects get new resource versions, all above those of the source. The history of etcd is compacted.

    Raises:
        BackupError: there are keys below the prefix, another client writes there, an object is larger than etcd
            accepts, or etcd's revision is too far behind.
        Unavailable: etcd does not answer.
    """
    start = prefix.rstrip("/") + "/"
    existing = await backend.range(start, prefix_end(start), count_only=True)
    if existing.total:
        raise BackupError(
            f"etcd has {existing.total} keys below {start} already; use an empty etcd, or another --etcd-prefix"
        )
    await _raise_revision(backend, contents.revision)
    ordered = sorted(contents.items, key=lambda item: item.revision)
    for at in range(0, len(ordered), _AT_ONCE):
        await asyncio.gather(*(_put(backend, start, item) for item in ordered[at : at + _AT_ONCE]))
    revision = await backend.revision()
    with contextlib.suppress(Compacted):  # another client compacted
        await backend.compact(revision)
    return revision


async def _put(backend: EtcdBackend, start: str, item: Item) -> None:
    lease = await backend.grant_lease(max(1, round(item.ttl))) if item.ttl is not None else 0
    try:
        result = await backend.put_if(start + item.key, item.value, 0, lease=lease)
    except RequestTooLarge:
        raise BackupError(
            f"{start}{item.key} is larger ({len(item.value)} bytes) than this etcd accepts; start it with a higher "
            "--max-request-bytes"
        ) from None
    if not result.succeeded:
        raise BackupError(
            f"another client wrote {start}{item.key} during the restoration; stop everything that uses this etcd"
        )


async def _raise_revision(backend: EtcdBackend, above: int) -> None:
    """Raise etcd's revision to at least `above`, by writes to otherwise unused keys, which are then deleted.

    Raises:
        BackupError: more than `MOST_REVISIONS` writes would be needed.
    """
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
        if not result.succeeded:  # left by an interrupted run
            expected = result.current.mod_revision if result.current is not None else 0
            continue
        expected = result.revision
    if expected:
        await backend.delete_if(key, expected)


def differences(expected: Sequence[Item], stored: Sequence[Item]) -> list[str]:
    """Return the keys whose values differ between the two, or that only one of them has.

    A key with a TTL may be missing in `stored`, because it may have expired.
    """
    values = {item.key: item.value for item in stored}
    short_lived = {item.key for item in expected if item.ttl is not None}
    expected_values = {item.key: item.value for item in expected}
    differ = [
        key
        for key, value in expected_values.items()
        if values.get(key) != value and not (key in short_lived and key not in values)
    ]
    return differ + sorted(values.keys() - expected_values.keys())
