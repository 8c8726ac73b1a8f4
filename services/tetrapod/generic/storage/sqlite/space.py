"""`Space`: the reserve of disk space with which a full disk still takes deletions.

A deletion needs space too: it appends to the log, and a checkpoint moves pages of the log to the database. Therefore a
file beside the database occupies a few megabytes. When the disk is full, the file is shortened piece by piece, and the
space that this frees is for deletions and compaction only. Other writes are rejected until the reserve is whole again,
or the database itself has as much free space, which deletions and compaction leave inside the file.
"""

from __future__ import annotations

import errno
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
_PROBE: Final = 64 << 10
"""Bytes that are written to find out whether the disk is full. A failed write of SQLite has at least one page."""
_FULL_ERRORS: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
_WRITE_ERRORS: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

FULL_TEXT: Final = (
    "the store has no space left, because the disk of the server is full: only deletions are possible until space is "
    "free"
)
"""The message of the error that clients get."""


def is_full(error: sqlite3.Error) -> bool:
    """Return whether an error of SQLite alone means that the disk is full.

    An exceeded quota has the code of any failed write. `Space.causes` recognizes it too.
    """
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

    def causes(self, error: sqlite3.Error) -> bool:
        """Return whether an error of SQLite means that the disk is full, or that a disk quota is exceeded.

        SQLite reports ENOSPC as SQLITE_FULL, but EDQUOT as a failed write, and Python hides the error of the system.
        So after a failed write, another one is tried. It may take as long as the disk needs.
        """
        return is_full(error) or (getattr(error, "sqlite_errorcode", None) in _WRITE_ERRORS and not self._has_space())

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
                # The disk may have more space than the quota of this user, so the margin is written too.
                if shutil.disk_usage(self._directory).free < self._reserve - size + _MARGIN:
                    return False
                self._extend(size, self._reserve + _MARGIN, self._reserve)
            except OSError:
                return False
            self.full = False
            log.info("the disk of %s has a reserve of %d MiB for deletions", self._directory, self._reserve >> 20)
            return True

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _has_space(self) -> bool:
        with self._lock:
            size = self._size()
            try:
                self._extend(size, size + _PROBE, size)
            except OSError as error:
                return error.errno not in _NO_SPACE
            return True

    def _extend(self, size: int, end: int, left: int) -> None:
        """Append to the reserve, and truncate it afterwards. A failed attempt leaves the former size.

        The bytes are random, because file systems store neither zeros that they compress nor unwritten ranges. They
        are synced, because some file systems find out about a quota only then.

        Args:
            size: the size of the reserve in bytes.
            end: the size until which it is written.
            left: the size that is left.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        chunk = os.urandom(min(_CHUNK, max(0, end - size)))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for offset in range(size, end, _CHUNK):
                wanted = min(len(chunk), end - offset)
                if os.write(descriptor, chunk[:wanted]) < wanted:
                    raise OSError(errno.ENOSPC, "the disk is full")
            os.fsync(descriptor)
            os.ftruncate(descriptor, left)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
