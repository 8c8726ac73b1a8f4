"""`EncryptedBackend`: a backend wrapper that encrypts the values of one resource. Its callers see plain values.

Keys, revisions and leases are those of the wrapped backend. A value that cannot be decrypted raises NotTransformable;
it is never skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from tetrapod.generic.storage.backend import (
    Backend,
    BackendEvent,
    BackendWatch,
    KeyValue,
    Range,
    StaleKeyValue,
    WatchBatch,
    WriteResult,
)
from tetrapod.generic.storage.encryption.transformer import Transformer, TransformError
from tetrapod.generic.storage.unreadable import CannotEncrypt, NotTransformable
from tetrapod.generic.storage.wrappers import ForwardingBackend


class EncryptedBackend(ForwardingBackend):
    """A wrapper of the store that encrypts the values of one resource; implements `Backend`.

    Args:
        inner: the store; `close` leaves it open.
        transformer: returns the resource's current transformer. It is called for each value, because the configuration
            may be reloaded.
    """

    def __init__(self, inner: Backend, transformer: Callable[[], Transformer]) -> None:
        super().__init__(inner)
        self.history = self.decrypted
        self._transformer = transformer

    async def close(self) -> None:
        """Do nothing: the wrapped backend is shared and closed by its owner."""

    # Reads

    async def get(self, key: str) -> KeyValue | None:
        return await self._plain(await self._inner.get(key))

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
        plain: list[KeyValue] = []
        failed: list[tuple[str, str]] = []
        for kv in kvs:
            try:
                plain.append(await self._decrypt(kv))
            except NotTransformable as error:
                failed.append((error.reason, error.key))
        if failed:
            raise NotTransformable(*failed[0], len(failed) - 1)
        return plain

    async def _plain(self, kv: KeyValue | None) -> KeyValue | None:
        return None if kv is None else await self._decrypt(kv)

    async def _decrypt(self, kv: KeyValue) -> KeyValue:
        try:
            plain, stale = await self._transformer().from_storage(kv.value, kv.key.encode())
        except TransformError as error:
            raise NotTransformable(str(error), kv.key) from error
        result_type = StaleKeyValue if stale else KeyValue
        return result_type(kv.key, plain, kv.mod_revision, kv.create_revision, kv.lease)

    # Writes

    async def put_if(self, key: str, value: bytes, expected: int, *, lease: int = 0) -> WriteResult:
        try:
            sealed = await self._transformer().to_storage(value, key.encode())
        except TransformError as error:
            raise CannotEncrypt(str(error)) from error
        return await self._result(await self._inner.put_if(key, sealed, expected, lease=lease))

    async def delete_if(self, key: str, expected: int) -> WriteResult:
        return await self._result(await self._inner.delete_if(key, expected))

    async def _result(self, result: WriteResult) -> WriteResult:
        return result if result.current is None else result._replace(current=await self._plain(result.current))

    # Watches

    @contextlib.asynccontextmanager
    async def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AsyncIterator[BackendWatch]:
        async with self._inner.watch(start, end, from_revision, previous=previous) as inner:
            yield _EncryptedWatch(inner, self._event)

    async def decrypted(
        self, start: str, end: str, first: int, last: int
    ) -> AsyncGenerator[Sequence[BackendEvent], None]:
        """Yield the decrypted history. See `Backend.history`, which this implements.

        Raises:
            NotTransformable: a value cannot be decrypted.
        """
        async for events in self._inner.history(start, end, first, last):
            yield [await self._event(event) for event in events]

    async def _event(self, event: BackendEvent) -> BackendEvent:
        if event.previous is not None:
            event = event._replace(previous=await self._decrypt(event.previous))
        if event.value is None:
            return event
        plain = await self._decrypt(KeyValue(event.key, event.value, event.revision, 0))
        return event._replace(value=plain.value)


class _EncryptedWatch:
    """A `BackendWatch` that decrypts events.

    Decryption may call a KMS plugin. Until it is done, `progress` excludes the events. `next_if_ready` returns None
    always, because decryption may have to wait.

    Args:
        inner: the watch of the store.
        decrypt: returns an event with decrypted values; it may raise NotTransformable.
    """

    def __init__(self, inner: BackendWatch, decrypt: Callable[[BackendEvent], Awaitable[BackendEvent]]) -> None:
        self._inner = inner
        self._decrypt = decrypt
        self._decrypting_after: int | None = None

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        batch = await self._inner.__anext__()
        if not batch.events:
            return batch
        self._decrypting_after = batch.events[0].revision - 1
        events = [await self._decrypt(event) for event in batch.events]
        self._decrypting_after = None
        return batch._replace(events=events)

    def next_if_ready(self) -> WatchBatch | None:
        return None

    @property
    def progress(self) -> int:
        return self._inner.progress if self._decrypting_after is None else self._decrypting_after
