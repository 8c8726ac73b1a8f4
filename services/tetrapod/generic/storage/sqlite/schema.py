"""The tables of the embedded store, and how its connections are opened.

`revisions` has one row per write, for ever until compaction; `current` says which of them is a key's present one, so that
reads of now never look at history. Each revision names the one it replaced: compaction follows those links and scans nothing.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tetrapod.generic.storage.backend import CannotOpen

APPLICATION_ID = 0x54455452  # "TETR"
SCHEMA_VERSION = 1
FIRST_REVISION = 2  # of an empty store, one more than etcd's: 1 is what clients and tests say when they mean long ago

TABLES = """
CREATE TABLE revisions (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    value BLOB,                 -- NULL: the key was deleted
    created INTEGER NOT NULL,   -- revision of the key's creation
    previous INTEGER NOT NULL,  -- revision that this one replaced, 0 for none
    lease INTEGER NOT NULL
);
CREATE INDEX revisions_by_key ON revisions (key, revision);
CREATE TABLE current (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, created INTEGER NOT NULL, lease INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX current_by_lease ON current (lease) WHERE lease != 0;
CREATE TABLE leases (id INTEGER PRIMARY KEY, expires REAL NOT NULL);
CREATE TABLE compaction (only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL);
INSERT INTO compaction VALUES (1, 0);
"""


class UnsupportedDatabase(CannotOpen):
    """The file is not a database of ours, or of a newer version."""


def open_connection(path: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; transactions are begun and ended by hand."""
    return sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False, cached_statements=256)


def is_new(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Whether there is nothing yet. Raises UnsupportedDatabase where there is something that is not ours; it is left as it is."""
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
    """Make the tables of a new database, check those of an old one. Raises UnsupportedDatabase."""
    new = is_new(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # with WAL: the log is synced at every commit
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if new:
        _create(connection, path)


def tune(connection: sqlite3.Connection, durable: bool = True) -> None:
    connection.execute("PRAGMA cache_size = -16000")
    if not durable:
        connection.execute("PRAGMA synchronous = OFF")


def _create(connection: sqlite3.Connection, path: Path | None) -> None:
    connection.executescript(
        f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )
    if path is not None:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """A new file outlives a power failure only once its directory entry is on disk too."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
