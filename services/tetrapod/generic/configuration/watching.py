"""Detects changes of a configuration file or directory: by metadata every second, and by content once a minute.

Upstream uses kernel notifications and polls every minute. Reading the metadata takes microseconds, and also detects
changes that network file systems or swapped symbolic links (a mounted ConfigMap) do not report.
Upstream: staging/src/k8s.io/apiserver/pkg/util/filesystem, WatchUntil
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import Awaitable, Callable
from typing import Final

log = logging.getLogger(__name__)

INTERVAL: Final = 1.0
RELOAD_INTERVAL: Final = 60.0
_FIRST_RETRY: Final = 0.005
"""Seconds after which a failed reload is repeated. Each further delay is twice as long."""

FileStamp = tuple[int, int, int]
Stamp = FileStamp | tuple[tuple[str, FileStamp | None], ...]
"""The metadata of a file, or the names and metadata of the files in a directory."""


async def watch(
    path: str,
    changed: Callable[[], Awaitable[bool | None]],
    *,
    interval: float = INTERVAL,
    again: float = RELOAD_INTERVAL,
) -> None:
    """Await `changed` when the file may have changed, and at least every `again` seconds, until cancelled.

    Exceptions of `changed` are logged. The first call comes after `interval` at the earliest.

    Args:
        path: the file, which may be missing, or a directory, of which the files are watched but not its subdirectories.
        changed: reloads the file or directory. If it returns False, it is awaited again after growing delays, and
            when the file has changed.
        interval: the seconds between two looks at the metadata of the file.
        again: the seconds after which `changed` is awaited even if the metadata has not changed.
    """
    last_stamp, due, retry = stamp(path), time.monotonic() + again, 0.0
    while True:
        await asyncio.sleep(min(interval, max(0.0, due - time.monotonic())) if retry else interval)
        current, now = stamp(path), time.monotonic()
        if current == last_stamp and now < due:
            continue
        last_stamp, failed = current, False
        try:
            failed = await changed() is False
        except Exception:
            log.exception("the file %s could not be reloaded", path)
        retry = min(2 * retry or _FIRST_RETRY, again) if failed else 0.0
        due = time.monotonic() + retry if failed else now + again


def stamp(path: str) -> Stamp | None:
    """Return the metadata by which a change of a file or directory is noticed, or None if it cannot be read."""
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return _stamp_of(status)
        with os.scandir(path) as entries:
            return tuple(sorted((entry.name, _entry_stamp(entry)) for entry in entries))
    except OSError:
        return None


def _entry_stamp(entry: os.DirEntry[str]) -> FileStamp | None:
    try:
        return _stamp_of(entry.stat())
    except OSError:
        return None


def _stamp_of(status: os.stat_result) -> FileStamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
