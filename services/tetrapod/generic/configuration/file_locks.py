"""Exclusive locks of open files between processes. The kernel releases them when the process ends for any reason.

They are `flock` on Unix, and a locked byte beyond the end of the file on Windows.
"""

from __future__ import annotations

import os
from typing import Any, Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCKED_BYTE: Final = 1 << 30
"""The offset of the byte that is locked on Windows. Other processes cannot read a locked byte, so it holds no data."""


def lock(descriptor: int) -> None:
    """Lock a file, and wait while another process has it locked.

    Args:
        descriptor: the descriptor of the file, which is open for writing.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while not _try_byte(descriptor, wait=True):
        continue


def try_lock(descriptor: int) -> bool:
    """Lock a file, and return True; return False at once if another process, or another open of it, has it locked.

    Args:
        descriptor: the descriptor of the file, which is open for writing.
    """
    if fcntl is None:
        return _try_byte(descriptor, wait=False)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Unlock a file that this descriptor has locked. Closing the descriptor does the same."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    else:
        _on_byte(descriptor, "LK_UNLCK")


def _try_byte(descriptor: int, *, wait: bool) -> bool:
    """Lock the byte, and return whether that succeeded. With `wait`, Windows tries for ten seconds."""
    try:
        _on_byte(descriptor, "LK_LOCK" if wait else "LK_NBLCK")
    except OSError:
        return False
    return True


def _on_byte(descriptor: int, mode: str) -> None:
    import msvcrt

    windows: Any = msvcrt  # mypy knows its functions on Windows only
    os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
    windows.locking(descriptor, getattr(windows, mode), 1)
