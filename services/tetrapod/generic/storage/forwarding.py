"""What stands over another storage, or watch, or in front of it, passes on where it has nothing of its own to do."""

from __future__ import annotations

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.interface import ResourceStorage, Watch, WatchEvent


class ForwardingBackend:
    """The part of `Backend` that is about no value."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self.revision = inner.revision
        self.request_progress = inner.request_progress
        self.grant_lease = inner.grant_lease
        self.compact = inner.compact
        self.size = inner.size

    @property
    def progress_reliable(self) -> bool:
        return self._inner.progress_reliable


class ForwardingStorage:
    """The part of `ResourceStorage` that is about no object."""

    def __init__(self, inner: ResourceStorage) -> None:
        self._inner = inner

    async def count(self) -> int:
        return await self._inner.count()

    def statistics(self) -> tuple[int, int] | None:
        return self._inner.statistics()

    async def ready(self) -> None:
        await self._inner.ready()

    async def close(self) -> None:
        await self._inner.close()


class ForwardingWatch:
    """The part of `Watch` that is about no event of an object."""

    def __init__(self, inner: Watch) -> None:
        self._inner = inner

    async def ended(self) -> None:
        await self._inner.ended()

    def bookmark(self) -> WatchEvent:
        return self._inner.bookmark()

    def close(self) -> None:
        self._inner.close()
