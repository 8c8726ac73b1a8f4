"""`ConvertedStorage`: stored custom resources in the version of the requests that ask for them, for definitions with a webhook.

What is read is converted from whatever version it was stored in, what is written to the storage version; forms.py says what
is done before and after. A conversion is made once per revision of an object and kept with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from tetrapod.extensions.custom.forms import Forms, LostVersion
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.storage.forwarding import ForwardingStorage, ForwardingWatch
from tetrapod.generic.storage.interface import (
    Entry,
    ListPage,
    ListQuery,
    Preconditions,
    ResourceStorage,
    Sink,
    TryUpdate,
    Updated,
    Watch,
    WatchEvent,
    WatchQuery,
)
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.decode import DecodeError
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.status import StatusError, internal_error

_NO_PRECONDITIONS: Final = Preconditions()
Convert = Callable[[Sequence[Object], str], Awaitable[list[Object]]]


class ConvertedStorage(ForwardingStorage):
    """Implements `ResourceStorage` over another. `prefix` is the stored keys', for refusals."""

    def __init__(self, inner: ResourceStorage, convert: Convert, version: str, stored: str, forms: Forms, prefix: str) -> None:
        super().__init__(inner)
        self._convert, self._forms = convert, forms
        self._version, self._stored, self._prefix = version, stored, prefix

    async def read(self, entries: Sequence[Entry]) -> list[Entry]:
        """
        Raises:
            StatusError: 500, as the webhook's failure is told.
        """
        missing = [entry for entry in entries if self not in entry.representations]
        if missing:
            made = await self._shown([entry.object() for entry in missing])
            for entry, obj in zip(missing, made, strict=True):
                entry.representations[self] = Unstored(entry.key, obj, entry.revision)
        return [entry.representations[self] for entry in entries]

    async def _shown(self, objects: list[Object]) -> list[Object]:
        """What was stored, for requests."""
        try:
            for obj in objects:
                self._forms.decode(obj)
        except LostVersion as lost:
            raise StatusError(500, "", str(lost)) from None
        made = await self._convert(objects, self._version)
        _settled(made, self._forms.settle)
        return made

    async def _readable(self, entries: Sequence[Entry]) -> list[Entry]:
        """As `read`; an object that cannot be converted is told to be corrupt."""
        try:
            return await self.read(entries)
        except StatusError as refusal:
            entry = next((e for e in entries if self not in e.representations), entries[0])
            where = f"Key: /{self._prefix}/{entry.key}, ResourceVersion: 0"
            why = _not_decodable(entry, refusal)
            raise internal_error(f"StorageError: corrupt object, Code: 7, {where}, AdditionalErrorMsg: {why}") from None

    async def _written(self, obj: Object) -> Object:
        made = await self._convert([obj], self._stored)
        _settled(made, self._forms.settle_stored)
        return made[0]

    async def rehearsed(self, entry: Entry) -> Entry:
        """What would come back of an object if it were stored, for a dry run."""
        made = await self._shown([await self._written(entry.object())])
        return Unstored(entry.key, made[0], entry.revision)

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        entry = await self._inner.get(key, resource_version)
        return None if entry is None else (await self._readable((entry,)))[0]

    async def list(self, query: ListQuery) -> ListPage:
        page = await self._inner.list(query)
        return page._replace(entries=await self._readable(page.entries))

    async def watch(self, query: WatchQuery) -> Watch:
        return _ConvertedWatch(await self._inner.watch(query), self)

    async def create(self, key: str, obj: Object, ttl: int = 0) -> Entry:
        entry = await self._inner.create(key, await self._written(obj), ttl)
        return (await self.read((entry,)))[0]

    async def guaranteed_update(
        self, key: str, try_update: TryUpdate, *, preconditions: Preconditions = _NO_PRECONDITIONS, allow_absent: bool = False
    ) -> Entry:
        async def converted(obj: Object | None, entry: Entry | None) -> Updated | None:
            try:
                made = None if entry is None else (await self.read((entry,)))[0]
            except StatusError as refusal:
                assert entry is not None
                raise StatusError(500, "", _not_decodable(entry, refusal)) from None
            updated = await try_update(None if made is None else made.object(), made)
            return None if updated is None else updated._replace(object=await self._written(updated.object))

        entry = await self._inner.guaranteed_update(key, converted, preconditions=preconditions, allow_absent=allow_absent)
        return (await self.read((entry,)))[0]

    async def delete(
        self, key: str, *, preconditions: Preconditions = _NO_PRECONDITIONS, validate: Callable[[Entry], Awaitable[None]] | None = None
    ) -> Entry:
        last: list[Entry] = []

        async def check(entry: Entry) -> None:
            last[:] = await self._readable((entry,))
            if validate is not None:
                await validate(last[0])

        entry = await self._inner.delete(key, preconditions=preconditions, validate=check)
        return Unstored(entry.key, last[0].object(), entry.revision) if last else (await self._readable((entry,)))[0]


def _settled(objects: Sequence[Object], settle: Callable[[Object], None]) -> None:
    """
    Raises:
        StatusError: 500, the metadata of an embedded resource is malformed.
    """
    try:
        for obj in objects:
            settle(obj)
    except (CoerceError, DecodeError) as error:
        raise StatusError(500, "", str(error)) from None


def _not_decodable(entry: Entry, refusal: StatusError) -> str:
    return f"object not decodable revision={entry.revision}: {refusal.message}"


class _ConvertedWatch(ForwardingWatch):
    """Implements `Watch` over another. An event that cannot be converted ends it, with an ERROR that says why."""

    def __init__(self, inner: Watch, storage: ConvertedStorage) -> None:
        super().__init__(inner)
        self._storage = storage
        self._pump: asyncio.Task[None] | None = None

    async def _converted(self, batch: Sequence[WatchEvent]) -> list[WatchEvent]:
        try:
            made = iter(await self._storage.read([event.entry for event in batch if event.entry is not None]))
        except StatusError as refusal:
            status = internal_error(f"unable to transform watch event: {refusal.message}").to_status()
            return [WatchEvent("ERROR", None, batch[0].revision, status=status)]
        return [event if event.entry is None else event.showing(next(made)) for event in batch]

    async def _through(self, batches: AsyncIterator[list[WatchEvent]]) -> AsyncIterator[list[WatchEvent]]:
        async for batch in batches:
            converted = await self._converted(batch)
            yield converted
            if len(converted) == 1 and converted[0].type == "ERROR":
                self._inner.close()
                return

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        return self._through(aiter(self._inner))

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        return self._through(self._inner.initial())

    def subscribe(self, sink: Sink) -> None:
        """Conversion has to be waited for, so the sink is called from a task, in order."""
        waiting: asyncio.Queue[Sequence[WatchEvent]] = asyncio.Queue()

        async def pump() -> None:
            while True:
                sink(await self._converted(await waiting.get()))

        self._pump = asyncio.create_task(pump())
        self._inner.subscribe(waiting.put_nowait)

    def close(self) -> None:
        super().close()
        if self._pump is not None:
            self._pump.cancel()
