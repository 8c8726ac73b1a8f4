"""Base classes for wrappers of a backend, a resource storage or a watch.

They forward what the wrapper does not change.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.watch import Sink, Watch, WatchEvent


class ForwardingBackend:
    """A base for `Backend` wrappers that forwards the methods that handle no values to the wrapped backend, `inner`.

    A subclass defines `get`, `range`, `put_if`, `delete_if`, `watch` and `close`. `history` is forwarded too, although
    it returns values: a subclass that changes values replaces it.
    """

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self.revision = inner.revision
        self.history = inner.history
        self.grant_lease = inner.grant_lease
        self.compact = inner.compact
        self.size = inner.size

    @property
    def progress_reliable(self) -> bool:
        return self._inner.progress_reliable


class ForwardingStorage:
    """A base for `ResourceStorage` wrappers that forwards all methods that neither return nor take objects.

    A subclass defines the other methods. `inner` is the wrapped storage.
    """

    def __init__(self, inner: ResourceStorage) -> None:
        self._inner = inner

    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        await self._inner.delete_unreadable(key, dry_run=dry_run, readable=readable)

    def cached(self) -> None:
        """Return None: the wrapper may change the entries of the cache."""
        return

    async def count(self) -> int:
        return await self._inner.count()

    def statistics(self) -> tuple[int, int] | None:
        return self._inner.statistics()

    async def ready(self) -> None:
        await self._inner.ready()

    async def close(self) -> None:
        await self._inner.close()


class ForwardingWatch:
    """A base for `Watch` wrappers that forwards `ended`, `send_bookmark` and `close`.

    A subclass defines the other methods. `inner` is the wrapped watch.
    """

    def __init__(self, inner: Watch) -> None:
        self._inner = inner

    async def ended(self) -> None:
        await self._inner.ended()

    def send_bookmark(self) -> None:
        self._inner.send_bookmark()

    def close(self) -> None:
        self._inner.close()


class MappedWatch(ForwardingWatch):
    """A `Watch` that converts the entries of another watch, such as to another API version.

    Args:
        inner: the watch whose entries are converted.
        convert: called with the entry of each event that has one. It returns the converted entry, or the same entry if
            no conversion is needed. A converted event has no `previous`.
    """

    def __init__(self, inner: Watch, convert: Callable[[Entry], Entry]) -> None:
        super().__init__(inner)
        self._convert = convert

    def _mapped(self, events: Sequence[WatchEvent]) -> list[WatchEvent]:
        return [
            event
            if event.entry is None or (converted := self._convert(event.entry)) is event.entry
            else event.showing(converted)
            for event in events
        ]

    async def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        async for batch in self._inner:
            yield self._mapped(batch)

    async def initial(self) -> AsyncIterator[list[WatchEvent]]:
        async for batch in self._inner.initial():
            yield self._mapped(batch)

    def subscribe(self, sink: Sink) -> None:
        self._inner.subscribe(lambda events: sink(self._mapped(events)))
