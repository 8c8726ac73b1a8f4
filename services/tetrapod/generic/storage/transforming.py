"""`TransformingBackend`: a base for backends that store values in another form than their callers see.

Keys, revisions and leases are those of the wrapped backend. Encryption at rest, encodings other
than JSON and objects in former versions use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.backend import (
    Backend,
    BackendEvent,
    BackendWatch,
    KeyValue,
    Range,
    StaleKeyValue,
    UnreadableKeyValue,
    WatchBatch,
    WriteResult,
)
from tetrapod.generic.storage.unreadable import NotTransformable
from tetrapod.generic.storage.wrappers import ForwardingBackend


class TransformingBackend(ForwardingBackend):
    """A `Backend` that transforms the values of another one. A subclass defines `_from_store` and `_to_store`.

    Args:
        inner: the store; `close` leaves it open.
    """

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.history = self._transformed_history

    async def _from_store(self, kv: KeyValue) -> KeyValue:
        """Return a stored key with the value that callers see, a `StaleKeyValue` if it must be rewritten.

        Subclasses define it.

        Raises:
            NotTransformable: the value cannot be decrypted.
        """
        raise NotImplementedError

    async def _to_store(self, key: str, value: bytes) -> bytes:
        """Return the value to store in place of `value`, which a caller writes to `key`. Subclasses define it.

        Raises:
            CannotEncrypt: the value cannot be encrypted.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing: the wrapped backend is shared and closed by its owner."""

    # Reads

    async def get(self, key: str) -> KeyValue | None:
        return await self._optional(await self._inner.get(key))

    async def range(
        self,
        start: str,
        end: str,
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        counted: bool = True,
    ) -> Range:
        page = await self._inner.range(
            start, end, limit=limit, revision=revision, keys_only=keys_only, count_only=count_only, counted=counted
        )
        return page if keys_only or count_only else page._replace(kvs=await self._all(page.kvs))

    async def _all(self, kvs: Sequence[KeyValue]) -> list[KeyValue]:
        timer = YieldTimer()
        plain = []
        for kv in kvs:
            plain.append(await self._readable(kv))
            await timer.yield_if_due()
        return plain

    async def _readable(self, kv: KeyValue) -> KeyValue:
        """Return a key with the value that callers see, an `UnreadableKeyValue` if it cannot be decrypted."""
        if isinstance(kv, UnreadableKeyValue):
            return kv
        try:
            return await self._from_store(kv)
        except NotTransformable as error:
            return UnreadableKeyValue(*kv._replace(value=error.first.reason.encode()))

    async def _optional(self, kv: KeyValue | None) -> KeyValue | None:
        return None if kv is None else await self._from_store(kv)

    # Writes

    async def put_if(
        self, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        stored = await self._to_store(key, value)
        return await self._result(await self._inner.put_if(key, stored, expected, lease=lease, deleting=deleting))

    async def delete_if(self, key: str, expected: int) -> WriteResult:
        return await self._result(await self._inner.delete_if(key, expected))

    async def _result(self, result: WriteResult) -> WriteResult:
        return result if result.current is None else result._replace(current=await self._optional(result.current))

    # Watches

    @contextlib.asynccontextmanager
    async def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AsyncIterator[BackendWatch]:
        async with self._inner.watch(start, end, from_revision, previous=previous) as inner:
            yield _TransformedWatch(inner, self._events)

    async def _transformed_history(
        self, start: str, end: str, first: int, last: int
    ) -> AsyncGenerator[Sequence[BackendEvent], None]:
        """Yield the transformed events of [start, end), of the revisions `first` to `last`, inclusive, in batches.

        Raises:
            Compacted: `first` is older than the history.
        """
        async for events in self._inner.history(start, end, first, last):
            yield await self._events(events)

    async def _events(self, events: Sequence[BackendEvent]) -> list[BackendEvent]:
        timer = YieldTimer()
        plain = []
        for event in events:
            plain.append(await self._event(event))
            await timer.yield_if_due()
        return plain

    async def _event(self, event: BackendEvent) -> BackendEvent:
        if event.previous is not None:
            event = event._replace(previous=await self._from_store(event.previous))
        if event.value is None:
            return event
        plain = await self._from_store(KeyValue(event.key, event.value, event.revision, 0))
        return event._replace(value=plain.value)


class _TransformedWatch:
    """A `BackendWatch` that transforms events. Those that have arrived together are in one batch.

    A transformation may wait, such as for a KMS plugin. Until it is done, `progress` excludes the events.
    `next_if_ready` returns None always for the same reason.

    Args:
        inner: the watch of the store.
        transform: returns events with transformed values.
    """

    def __init__(
        self, inner: BackendWatch, transform: Callable[[Sequence[BackendEvent]], Awaitable[Sequence[BackendEvent]]]
    ) -> None:
        self._inner = inner
        self._transform = transform
        self._transforming_after: int | None = None
        self._notification: WatchBatch | None = None  # a progress notification that arrived behind the last events

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        batch = self._notification or await self._inner.__anext__()
        self._notification = None
        if not batch.events:
            return batch
        self._transforming_after = batch.events[0].revision - 1
        arrived = list(batch.events)
        while (following := self._inner.next_if_ready()) is not None and following.events:
            arrived += following.events
        self._notification = following
        events = await self._transform(arrived)
        self._transforming_after = None
        return WatchBatch(events, arrived[-1].revision)

    def next_if_ready(self) -> WatchBatch | None:
        return None

    def request_progress(self) -> None:
        self._inner.request_progress()

    @property
    def progress(self) -> int:
        return self._inner.progress if self._transforming_after is None else self._transforming_after


class ConvertedBackend(TransformingBackend):
    """A wrapper of the store that converts values between the stored version and the one that its callers see.

    A value that is not stored in the version in which it would be written is a `StaleKeyValue`.

    Args:
        inner: the store; `close` leaves it open.
        from_store: returns a stored value in the version of the callers, and the value itself if it has that version.
        to_store: returns a caller's value in the version to store; None stores the version of the callers.
    """

    def __init__(
        self,
        inner: Backend,
        from_store: Callable[[bytes], bytes],
        to_store: Callable[[bytes], bytes] | None = None,
    ) -> None:
        super().__init__(inner)
        self._for_caller = from_store
        self._for_store = to_store

    async def _from_store(self, kv: KeyValue) -> KeyValue:
        try:
            value = self._for_caller(kv.value)
        except (LookupError, ValueError, AttributeError, TypeError):
            return kv  # the cache reports it as an object that cannot be decoded
        stale = (value is kv.value) == (self._for_store is not None)
        return (StaleKeyValue if stale else KeyValue)(*kv._replace(value=value))

    async def _to_store(self, key: str, value: bytes) -> bytes:
        return value if self._for_store is None else self._for_store(value)
