"""`Counted`: the embedded server, knowing when it has nothing more to do."""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.cli.embedded import Embedded
from tetrapod.cli.options import Options
from tetrapod.generic.request import Request, Response
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.generic.storage.sqlite.snapshots import Snapshot
from tetrapod.machinery.requestinfo import is_long_running

_QUIET: Final = 60
"""Turns of the loop without a write or a request after which nothing is under way: an event reaches the last of those who follow it, and
becomes a request, within about a dozen."""
_PATIENCE: Final = 2.0
_ATTEMPTS: Final = 5


class Counted(Embedded):
    def __init__(self, options: Options, store: SqliteBackend) -> None:
        self._store = store
        self._under_way = 0
        super().__init__(options, store)

    async def director(self, request: Request) -> Response:
        if is_long_running(request.info):
            return await super().director(request)
        self._under_way += 1
        try:
            return await super().director(request)
        finally:
            self._under_way -= 1

    async def settled(self, patience: float = _PATIENCE) -> bool:
        """Returns once what has been written has had its consequences: caches and informers follow, controllers rest.

        False where it did not come to rest in time, since somebody writes all the time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        quiet, last = 0, await self._store.revision()
        while quiet < _QUIET:
            await asyncio.sleep(0)
            now = await self._store.revision()
            quiet = quiet + 1 if now == last and not self._under_way else 0
            last = now
            if loop.time() > deadline:
                return False
        return True

    async def snapshot(self) -> Snapshot:
        await self.settled()
        return await self._store.snapshot()

    async def go_back(self, snapshot: Snapshot) -> bool:
        """To what was stored then. Controllers see things vanish and reappear, and may act on it once more: until nothing differs."""
        for _ in range(_ATTEMPTS):
            await self.settled()
            if not await self._store.restore(snapshot):
                return True
        return False

    async def copy(self) -> SqliteBackend:
        """The store of a fork."""
        await self.settled()
        return await self._store.copy()
