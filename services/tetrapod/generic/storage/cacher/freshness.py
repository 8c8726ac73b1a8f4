"""`Freshness`: decides how recent the cache must be for a read, and whether the cache may answer it at all."""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.reflector import Reflector
from tetrapod.generic.storage.errors import TooLargeResourceVersion

TIMEOUT: Final = 3.0
"""Seconds to wait for a revision (upstream: blockTimeout)."""


class Freshness:
    """Waits until the cache of one resource is recent enough for a read.

    Args:
        backend: the store, which is asked for its current revision.
        cache: the watch cache.
        reflector: the task that fills the cache; it is started by the first wait.
    """

    def __init__(self, backend: Backend, cache: Cache, reflector: Reflector) -> None:
        self._backend = backend
        self._cache = cache
        self._reflector = reflector

    async def filled(self) -> None:
        """Wait without a time limit until the cache has been filled, starting to fill it if necessary.

        Raises:
            Unavailable: the store does not answer, or (NotReady) contains values that cannot be read.
        """
        if not self._cache.filled:
            await self._reflector.ready()

    async def loaded(self) -> bool:
        """Wait up to three seconds until the cache has been filled, and return whether it has.

        Raises:
            Unavailable: the store does not answer, or (NotReady) contains values that cannot be read.
        """
        if self._cache.filled:
            return True
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._reflector.ready()
        except TimeoutError:
            return False
        return True

    @traced("waiting for the latest revision", detailed=True)
    async def latest(self, *, wait_for_fill: bool = True) -> bool:
        """Wait until the cache includes every write that was acknowledged before this call.

        With etcd, all concurrent callers share one request for the current revision; SQLite knows it without a request.

        Args:
            wait_for_fill: wait for a cache that is still being loaded without a time limit, instead of three seconds.

        Returns:
            True if the cache may answer the read. False if the read must go to the backend: the store's progress
            notifications are unreliable, the cache is still being loaded, or it did not catch up within three seconds.

        Raises:
            Unavailable: the store does not answer, or (NotReady) contains values that cannot be read.
        """
        if not self._backend.progress_reliable:
            return False
        if not self._cache.filled:
            if wait_for_fill:
                await self._reflector.ready()
            elif not await self.loaded():
                return False
        revision = await self._backend.revision()
        return self._reflector.revision() >= revision or await self._reflector.reach(revision, TIMEOUT)

    async def at_least(self, revision: int) -> bool:
        """Wait until the cache has been filled and, up to three seconds, until it has reached `revision`.

        Returns:
            True if the cache may answer the read; False if it must go to the backend, which has the revision.

        Raises:
            TooLargeResourceVersion: the revision was not reached in time.
            Unavailable: the store does not answer, or (NotReady) contains values that cannot be read.
        """
        if not self._cache.filled:
            await self._reflector.ready()
        if self._reflector.revision() >= revision:
            return True
        if not self._backend.progress_reliable and await self._backend.revision() >= revision:
            # Without reliable progress notifications the cache may never learn that it has reached the revision.
            return False
        if await self._reflector.reach(revision, TIMEOUT):
            return True
        raise TooLargeResourceVersion(revision, self._reflector.revision())

    def revision(self) -> int:
        """Return the revision up to which the cache is current; 0 before it has been filled."""
        return self._reflector.revision()
