"""`Space`: the reserve of disk space with which a full disk still takes deletions.

A deletion needs space too: it appends to the log, and a checkpoint moves pages of the log to the database. Therefore a
file beside the database occupies a few megabytes. When the disk is full, the file is shortened piece by piece, and the
space that this frees is for deletions and compaction only. Other writes are rejected until the reserve is whole again,
or the database itself has as much free space, which deletions and compaction leave inside the file.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

RESERVE: Final = 8 << 20
"""Bytes. The log has at most about 4 MiB before a checkpoint, which may need as much in the database."""
_PIECE: Final = 2 << 20
"""Bytes that are released at a time, because another program may take the space at once."""
_MARGIN: Final = 4 << 20
"""Bytes that must be free beyond the reserve before it is restored, so that the next writes do not need it again."""
_CHUNK: Final = 1 << 20
_FULL_ERRORS: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)

FULL_TEXT: Final = (
    "the store has no space left, because the disk of the server is full: only deletions are possible until space is "
    "free"
)
"""The message of the error that clients get."""


def is_full(error: sqlite3.Error) -> bool:
    """Return whether an error of SQLite means that the disk is full."""
    return getattr(error, "sqlite_errorcode", None) in _FULL_ERRORS


class Space:
    """The reserve of one database, which is restored when the server starts if the disk has space.

    All methods can be called from any thread.

    Args:
        database: the file of the database.
        reserve: the size of the reserve in bytes; 0 for a database without one.

    Attributes:
        full: whether the disk was full and the reserve has not been restored since.
    """

    def __init__(self, database: Path, reserve: int = RESERVE) -> None:
        self._directory = database.parent
        self._path = Path(f"{database}.reserve")
        self._reserve = reserve
        self._lock = threading.Lock()
        self.full = self._size() < reserve
        if not self.restore():
            log.error("the disk of %s has too little space: only deletions are possible", database)

    def admits(self, connection: sqlite3.Connection) -> bool:
        """Return whether a write may take space that deletions may need later.

        Args:
            connection: the open transaction of the write.

        Raises:
            sqlite3.Error: the database cannot be read.
        """
        if not self.full:
            return True
        free_pages = connection.execute("PRAGMA freelist_count").fetchone()[0]
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        return bool(free_pages * page_size >= RESERVE)

    def set_full(self) -> None:
        """Begin to reject writes other than deletions."""
        with self._lock:
            if not self.full:
                log.error("the disk of %s is full: only deletions are possible until space is free", self._directory)
            self.full = True

    def release(self) -> bool:
        """Free a piece of the reserve. Return False if nothing was left of it, or it could not be freed."""
        with self._lock:
            size = self._size()
            if not size:
                return False
            self.full = True
            try:
                os.truncate(self._path, max(0, size - _PIECE))
            except OSError as error:
                log.error("the reserve of disk space %s cannot be freed: %s", self._path, error)
                return False
            return True

    def restore(self) -> bool:
        """Make the reserve whole if the disk has space for it and more. Return whether it is whole."""
        with self._lock:
            if not self.full:
                return True
            size = self._size()
            try:
                if shutil.disk_usage(self._directory).free < self._reserve - size + _MARGIN:
                    return False
                self._extend(size)
            except OSError:
                return False
            self.full = False
            log.info("the disk of %s has a reserve of %d MiB for deletions", self._directory, self._reserve >> 20)
            return True

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _extend(self, size: int) -> None:
        """Append to the reserve until it has its size. A failed attempt leaves the former size.

        The bytes are random, because file systems store neither zeros that they compress nor unwritten ranges.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        if size >= self._reserve:
            return
        chunk = os.urandom(_CHUNK)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for offset in range(size, self._reserve, _CHUNK):
                wanted = min(_CHUNK, self._reserve - offset)
                if os.write(descriptor, chunk[:wanted]) < wanted:
                    raise OSError("the disk is full")
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
