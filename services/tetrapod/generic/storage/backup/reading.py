"""Reads the contents of a store at one revision: etcd in pages at a past revision, SQLite in one read transaction.

The server that uses the store may keep running.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from tetrapod.generic.storage.backend import Compacted, KeyValue, prefix_end
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.sqlite import snapshots
from tetrapod.generic.storage.sqlite.schema import is_new

PAGE: Final = 500
_ATTEMPTS: Final = 3


async def read_etcd(backend: EtcdBackend, prefix: str, source: str) -> Contents:
    """Read all keys below `prefix` from etcd, at one revision, with the remaining seconds of their leases.

    Keys of expired leases are left out.

    Args:
        source: describes the store in the backup.

    Raises:
        Unavailable: etcd does not answer.
        BackupError: etcd was compacted while it was read, three times.
    """
    start = prefix.rstrip("/") + "/"
    for _ in range(_ATTEMPTS):
        try:
            kvs, revision = await _pages(backend, start)
        except Compacted:  # reading took longer than the history is kept: start again
            continue
        leases = {kv.lease for kv in kvs if kv.lease}
        remaining = {lease: await backend.time_to_live(lease) for lease in leases}
        items = [
            Item(kv.key[len(start) :], kv.value, kv.mod_revision, kv.create_revision, remaining.get(kv.lease))
            for kv in kvs
            if not kv.lease or remaining[kv.lease] >= 0
        ]
        return Contents(source, revision, items)
    raise BackupError(
        "etcd forgets its history faster than it can be read; compact it less often while a backup is made"
    )


async def _pages(backend: EtcdBackend, start: str) -> tuple[list[KeyValue], int]:
    end = prefix_end(start)
    page = await backend.range(start, end, limit=PAGE)
    revision, kvs = page.revision, list(page.kvs)
    while page.more:
        page = await backend.range(kvs[-1].key + "\0", end, limit=PAGE, revision=revision)
        kvs += page.kvs
    return kvs, revision


def read_sqlite(database: Path, prefix: str, source: str) -> Contents:
    """Read all keys below `prefix` from a database file, which a server may have open.

    Keys of expired leases are left out.

    Args:
        source: describes the store in the backup.

    Raises:
        BackupError: the file does not exist, is empty or cannot be read.
        UnsupportedDatabase: the file is not a database of this version of Tetrapod.
    """
    if not database.is_file():
        raise BackupError(f"no such database: {database}; has `tetrapod up` run with this data directory?")
    start = prefix.rstrip("/") + "/"
    try:
        with closing(
            sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as connection:
            return _contents(connection, database, start, source)
    except sqlite3.Error as error:
        raise BackupError(f"{database} cannot be read: {error}") from None


def _contents(connection: sqlite3.Connection, database: Path, start: str, source: str) -> Contents:
    if is_new(connection, database):
        raise BackupError(f"{database} is empty")
    connection.execute("BEGIN")
    snapshot = snapshots.take(connection, time.time())
    remaining = snapshot.leases
    items = [
        Item(
            key[len(start) :],
            stored.value,
            stored.revision,
            stored.created,
            remaining[stored.lease] if stored.lease else None,
        )
        for key, stored in sorted(snapshot.entries.items())
        if key.startswith(start) and remaining.get(stored.lease, 1.0) > 0
    ]
    return Contents(source, snapshot.revision, items)
