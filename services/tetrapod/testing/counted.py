"""The embedded server with a count of requests in flight, to detect when it is idle."""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.apps.embedded import Embedded
from tetrapod.apps.options.options import Options
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.generic.storage.sqlite.snapshots import Snapshot
from tetrapod.machinery.requestinfo import is_long_running

_QUIET: Final = 60
"""Iterations of the event loop without a write or a request in flight after which the server counts as idle. An event
reaches its last consumer, and results in a request, within about a dozen.
"""
_TIMEOUT_SECONDS: Final = 2.0
_ATTEMPTS: Final = 5


class Counted(Embedded):
    """An embedded server that counts its requests in flight, except long-running ones."""

    def __init__(self, options: Options, store: SqliteBackend) -> None:
        """Create the server; `store` is closed with it."""
        self._store = store
        self._under_way = 0
        super().__init__(options, store)

    async def director(self, request: Request) -> Response:
        """Pass a request to the embedded server, and count it while it is in flight."""
        if is_long_running(request.info):
            return await super().director(request)
        self._under_way += 1
        try:
            return await super().director(request)
        finally:
            self._under_way -= 1

    async def settled(self, timeout: float = _TIMEOUT_SECONDS) -> bool:
        """Wait until the consequences of all writes have happened.

        They have happened when caches and informers are up to date, and controllers are idle.

        Args:
            timeout: the timeout in seconds.

        Returns:
            False if the server was not idle in time, because a client or controller writes continuously.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        idle_iterations, last = 0, await self._store.revision()
        while idle_iterations < _QUIET:
            await asyncio.sleep(0)
            now = await self._store.revision()
            idle_iterations = idle_iterations + 1 if now == last and not self._under_way else 0
            last = now
            if loop.time() > deadline:
                return False
        return True

    async def snapshot(self) -> Snapshot:
        """Wait until the server is idle, at most 2 seconds, and return a snapshot of the storage."""
        await self.settled()
        return await self._store.snapshot()

    async def restore(self, snapshot: Snapshot) -> bool:
        """Restore a snapshot, repeatedly until nothing differs from it.

        Repetition is needed because controllers may write in response to the restored changes.

        Returns:
            False if the state still differs after five attempts.
        """
        for _ in range(_ATTEMPTS):
            await self.settled()
            if not await self._store.restore(snapshot):
                return True
        return False

    async def copy(self) -> SqliteBackend:
        """Wait until the server is idle, at most 2 seconds, and return a copy of the storage, for a fork.

        The caller closes it, usually by passing it to the `Counted` of the fork.
        """
        await self.settled()
        return await self._store.copy()
