"""The lock file of a database, which only one process may open.

The reason is that watch events are delivered within the process only.

The kernel releases it when the process ends for any reason, so a lock cannot become stale.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tetrapod.generic.configuration.file_locks import try_lock
from tetrapod.generic.storage.backend import CannotOpen


class DatabaseInUse(CannotOpen):
    """The error for a database that another process, or another backend in this process, has open.

    Args:
        path: the database file.
        holder: the process ID that the lock file names, "" if it names none.
    """

    def __init__(self, path: Path, holder: str) -> None:
        process = f"process {holder}" if holder else "another process"
        super().__init__(f"the database {path} is in use by {process}; only one process can serve it at a time")
        self.path = path


class DatabaseLock:
    """An exclusive lock on a database file, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock of the database at `path`, which need not exist.

        Raises DatabaseInUse at once if it is taken.
        """
        self._fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not try_lock(self._fd):
            os.lseek(self._fd, 0, os.SEEK_SET)
            holder = os.read(self._fd, 32).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise DatabaseInUse(path, holder)
        with contextlib.suppress(OSError):  # the disk is full; the number is only for the error text above
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.write(self._fd, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Release the lock. Does nothing if it was released before."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
