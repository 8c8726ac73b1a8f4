"""Detects changes of a configuration file: by its metadata every second, and by its content once a minute.

Upstream uses kernel notifications and polls every minute. Reading the metadata takes microseconds, and also detects
changes that network file systems or swapped symbolic links (a mounted ConfigMap) do not report.
Upstream: staging/src/k8s.io/apiserver/pkg/util/filesystem, WatchUntil
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

INTERVAL: Final = 1.0
RELOAD_INTERVAL: Final = 60.0

Stamp = tuple[int, int, int]


async def watch(
    path: str, changed: Callable[[], Awaitable[None]], *, interval: float = INTERVAL, again: float = RELOAD_INTERVAL
) -> None:
    """Await `changed` when the file may have changed, and at least every `again` seconds, until cancelled.

    Exceptions of `changed` are logged. The first call comes after `interval` at the earliest.

    Args:
        path: the file, which may be missing.
        changed: reloads the file.
        interval: the seconds between two looks at the metadata of the file.
        again: the seconds after which `changed` is awaited even if the metadata has not changed.
    """
    last_stamp, last_call = _stamp(path), time.monotonic()
    while True:
        await asyncio.sleep(interval)
        stamp, now = _stamp(path), time.monotonic()
        if stamp == last_stamp and now - last_call < again:
            continue
        last_stamp, last_call = stamp, now
        try:
            await changed()
        except Exception:
            log.exception("the file %s could not be reloaded", path)


def _stamp(path: str) -> Stamp | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
