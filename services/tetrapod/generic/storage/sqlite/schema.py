"""The tables of the embedded store, and functions that open its connections.

`revisions` has one row per write, until compaction. `current` names the latest revision of each existing key, so that
current reads do not touch history. Each revision names the one it replaced: compaction follows these links instead of
scanning.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tetrapod.generic.storage.backend import CannotOpen

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
    """Open a connection that any thread may use, one at a time, with explicit transactions."""
    return sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False, cached_statements=256)


def is_new(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Return whether the database is empty.

    Raises:
        UnsupportedDatabase: it contains something else than a Tetrapod database of this version. It is not modified.
    """
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise UnsupportedDatabase(f"{path} cannot be opened as a database: {error}") from error
    new = application == 0 and version == 0 and tables == 0
    if not new and application != APPLICATION_ID:
        raise UnsupportedDatabase(f"{path} is a SQLite database, but not one of Tetrapod's")
    if not new and version != SCHEMA_VERSION:
        raise UnsupportedDatabase(f"{path} has schema version {version}; this Tetrapod knows version {SCHEMA_VERSION}")
    return bool(new)


def prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    """Create the tables of a new database, or check those of an existing one. Raises UnsupportedDatabase."""
    new = is_new(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # with WAL, this syncs the log at every commit
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if new:
        _create(connection, path)


def tune(connection: sqlite3.Connection, durable: bool = True) -> None:
    """Set the connection's cache size, and disable syncing if not `durable`."""
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
    """Sync a directory, because a new file survives a power failure only once its directory entry is on disk."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
