"""A lock between processes, held on a file."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from tetrapod.generic.configuration import file_locks


class ProcessLock:
    """A context manager that one process at a time can enter; others block until it leaves or dies.

    It does not exclude threads of the same process. Each process creates its own object: an object that a process
    inherits by fork shares the lock of its parent.

    Args:
        path: the file of the lock, created if it is missing and open until `close`.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)

    def __enter__(self) -> None:
        file_locks.lock(self._descriptor)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        file_locks.unlock(self._descriptor)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        os.close(self._descriptor)
