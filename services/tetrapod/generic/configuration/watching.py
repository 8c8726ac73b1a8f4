"""Notices that a configuration file has changed: by its status every second, by its content once a minute.

Upstream: k8s.io/apiserver/pkg/util/filesystem (WatchUntil), which asks the kernel and polls every minute. Looking at a file's status
costs microseconds, and sees what file systems over a network or a swapped symbolic link (a mounted config map) do not report.
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


async def watch(path: str, changed: Callable[[], Awaitable[None]], *, interval: float = INTERVAL, again: float = RELOAD_INTERVAL) -> None:
    """Call `changed` when the file may have changed, and every `again` seconds, until cancelled. Its errors are logged."""
    seen, called = _stamp(path), time.monotonic()
    while True:
        await asyncio.sleep(interval)
        stamp, now = _stamp(path), time.monotonic()
        if stamp == seen and now - called < again:
            continue
        seen, called = stamp, now
        try:
            await changed()
        except Exception:
            log.exception("the file %s could not be reloaded", path)


def _stamp(path: str) -> Stamp | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
