"""What stands over another storage, or watch, or in front of it, passes on where it has nothing of its own to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.interface import Entry, ResourceStorage, Sink, Watch, WatchEvent


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


class ShownWatch(ForwardingWatch):
    """Implements `Watch` over another; `shown` says as what an object is told of, itself where that is as it is stored."""

    def __init__(self, inner: Watch, shown: Callable[[Entry], Entry]) -> None:
        super().__init__(inner)
        self._shown = shown

    def _mapped(self, events: Sequence[WatchEvent]) -> list[WatchEvent]:
        return [
            event if event.entry is None or (made := self._shown(event.entry)) is event.entry else event.showing(made) for event in events
        ]

    async def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        async for batch in self._inner:
            yield self._mapped(batch)

    async def initial(self) -> AsyncIterator[list[WatchEvent]]:
        async for batch in self._inner.initial():
            yield self._mapped(batch)

    def subscribe(self, sink: Sink) -> None:
        self._inner.subscribe(lambda events: sink(self._mapped(events)))
