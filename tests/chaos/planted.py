"""A server with a planted bug, `python -m chaos.planted BUG up ...`.

The checker must find the bug (tests/e2e/test_chaos.py).

The storage is wrapped before the command line starts; the server's own code is unchanged. Objects that the server needs
itself are spared.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Sequence
from typing import Any, Final

from chaos.kinds import CONFIG_MAPS, NAMESPACE, WIDGETS
from tetrapod.cli.main import main
from tetrapod.generic.storage.backend import WatchBatch, WriteResult
from tetrapod.generic.storage.cacher.freshness import Freshness
from tetrapod.generic.storage.cacher.watching import CacheWatch
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.storage.sqlite.watching import SqliteWatch

EVERY: Final = 10  # the share of operations in which the bug occurs: rare, like real bugs
_WIDGETS: Final = WIDGETS.prefix.removesuffix(f"{NAMESPACE}/")


def lost_write() -> None:
    """Acknowledge an occasional update with the revision of the next write, without applying it."""
    put_if, numbers = SqliteBackend.put_if, itertools.count(1)

    async def careless(
        self: SqliteBackend, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        if expected and key.startswith(CONFIG_MAPS.prefix) and not next(numbers) % EVERY:
            return WriteResult(True, await self.revision() + 1, None)
        return await put_if(self, key, value, expected, lease=lease, deleting=deleting)

    SqliteBackend.put_if = careless  # type: ignore[method-assign]


def stale_read() -> None:
    """Serve consistent reads of widgets from the cache without waiting for it to be current, and delay its events."""
    following, latest = SqliteWatch.__anext__, Freshness.latest

    async def at_once(self: Freshness, *, wait_for_fill: bool = True) -> bool:
        if self._reflector._prefix != _WIDGETS:
            return await latest(self, wait_for_fill=wait_for_fill)
        await self.filled()
        return True

    async def late(self: SqliteWatch) -> WatchBatch:
        batch = await following(self)
        if self.start == _WIDGETS:
            await asyncio.sleep(0.3)
        return batch

    Freshness.latest = at_once  # type: ignore[method-assign]
    SqliteWatch.__anext__ = late  # type: ignore[method-assign]


def watch_gap() -> None:
    """Drop an occasional event for watchers of the clients' namespace."""
    push, numbers = CacheWatch.push, itertools.count(1)

    def careless(self: CacheWatch, events: Sequence[Any]) -> None:
        push(self, events if self.scope != f"{NAMESPACE}/" or next(numbers) % EVERY else ())

    CacheWatch.push = careless  # type: ignore[method-assign]


BUGS: Final = {bug.__name__.replace("_", "-"): bug for bug in (lost_write, stale_read, watch_gap)}

if __name__ == "__main__":
    BUGS[sys.argv.pop(1)]()
    main()
