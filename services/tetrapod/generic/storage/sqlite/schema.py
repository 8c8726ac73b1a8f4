"""The tables of the embedded store, and functions that open its connections.

`revisions` has one row for each write, until it is compacted. `current` has the latest revision of each existing key,
so that current reads do not touch history. Each revision has the number of the one that it replaced: compaction follows
these links instead of scanning.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from pathlib import Path

from tetrapod.generic.storage.backend import CannotOpen
from tetrapod.generic.storage.sqlite.space import is_full

MEMORY = ":memory:"
APPLICATION_ID = 0x54455452  # "TETR"
SCHEMA_VERSION = 1
FIRST_REVISION = 2  # revision of an empty store, one more than etcd's, because clients and tests use 1 to mean long ago

TABLES = (
    """
CREATE TABLE revisions (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    value BLOB,                 -- NULL: the key was deleted
    created INTEGER NOT NULL,   -- revision of the key's creation
    previous INTEGER NOT NULL,  -- revision that this one replaced, 0 for none
    lease INTEGER NOT NULL
);
CREATE INDEX revisions_by_key ON revisions (key, revision);
CREATE TABLE current (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, created INTEGER NOT NULL, """
    """lease INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX current_by_lease ON current (lease) WHERE lease != 0;
CREATE TABLE leases (id INTEGER PRIMARY KEY, expires REAL NOT NULL);
CREATE TABLE compaction (only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL);
INSERT INTO compaction VALUES (1, 0);
"""
)


class UnsupportedDatabase(CannotOpen):
    """The file is not a Tetrapod database, or has another schema version."""


def open_connection(path: str) -> sqlite3.Connection:
    """Open a connection in autocommit mode, so that transactions are explicit. Any thread may use it, one at a time.

    Args:
        path: the path of the database, or `MEMORY`. A file that does not exist is created. Only its owner can read it,
            and the log and the index that SQLite puts beside it, because they contain Secrets.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    if path != MEMORY:
        with contextlib.suppress(OSError):  # it exists, or SQLite reports what is wrong
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    return sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False, cached_statements=256)


def is_new(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Return whether the database is empty; False for a Tetrapod database of this schema version. It is not modified.

    Args:
        connection: the open database.
        path: its file, for error texts; None if it is in memory.

    Raises:
        UnsupportedDatabase: the file is not a database, or one of another program or schema version.
        sqlite3.Error: the disk is full.
    """
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if is_full(error):
            raise
        raise UnsupportedDatabase(f"{path} cannot be opened as a database: {error}") from error
    new = application == 0 and version == 0 and tables == 0
    if not new and application != APPLICATION_ID:
        raise UnsupportedDatabase(f"{path} is a SQLite database, but not one of Tetrapod's")
    if not new and version != SCHEMA_VERSION:
        raise UnsupportedDatabase(f"{path} has schema version {version}; this Tetrapod knows version {SCHEMA_VERSION}")
    return bool(new)


def prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    """Create the tables of an empty database, or check those of an existing one, and switch the connection to WAL.

    Args:
        path: the file, for error texts; None if the database is in memory.

    Raises:
        UnsupportedDatabase: the file is not a database of this version of Tetrapod.
    """
    new = is_new(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # with WAL, this syncs the log at every commit
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if new:
        _create(connection, path)


def tune(connection: sqlite3.Connection, durable: bool = True) -> None:
    """Set the connection's cache size (16 MB), and disable syncing to disk if not `durable`."""
    connection.execute("PRAGMA cache_size = -16000")
    if not durable:
        connection.execute("PRAGMA synchronous = OFF")


def _create(connection: sqlite3.Connection, path: Path | None) -> None:
    connection.executescript(
        f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; "
        "COMMIT;"
    )
    if path is not None:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Sync a directory to disk, because a new file survives a power failure only with its directory entry.

    Windows cannot open directories, and its file systems keep the entry with the file.
    """
    if sys.platform == "win32":
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
