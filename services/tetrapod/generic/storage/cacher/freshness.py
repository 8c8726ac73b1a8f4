"""`Freshness`: how recent must the cache be for a read, and may the cache answer it at all."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.reflector import Reflector
from tetrapod.generic.storage.interface import TooLargeResourceVersion
from tetrapod.generic.tracing.spans import seen

PATIENCE: Final = 3.0
"""Seconds to wait for a revision (upstream: blockTimeout)."""


class Freshness:
    def __init__(self, backend: Backend, cache: Cache, reflector: Reflector) -> None:
        self._backend = backend
        self._cache = cache
        self._reflector = reflector

    async def filled(self) -> None:
        """Any state will do."""
        if not self._cache.filled:
            await self._reflector.ready()

    @seen("waiting for the latest revision", detailed=True)
    async def latest(self) -> bool:
        """Wait until the cache has all that was acknowledged before this call. False: read from the backend instead.

        The backend's revision is asked once for all who wait at that moment (etcd), or costs nothing (embedded).
        """
        if not self._backend.progress_reliable:
            return False
        if not self._cache.filled:
            await self._reflector.ready()
        revision = await self._backend.revision()
        return self._reflector.revision() >= revision or await self._reflector.reach(revision, PATIENCE)

    async def at_least(self, revision: int) -> bool:
        """Wait for `revision`. False: read from the backend instead. Raises TooLargeResourceVersion when it is not reached in time."""
        if not self._cache.filled:
            await self._reflector.ready()
        if self._reflector.revision() >= revision:
            return True
        if not self._backend.progress_reliable and await self._backend.revision() >= revision:
            return False  # nothing may ever tell the cache that it is there
        if await self._reflector.reach(revision, PATIENCE):
            return True
        raise TooLargeResourceVersion(revision, self._reflector.revision())

    def revision(self) -> int:
        return self._reflector.revision()
