"""`CurrentStorage`: stored custom resources in one version, as the present definition has them.

An object keeps the bytes with which it was written; since then the schema may have gained defaults and lost fields, or another
version may have become the one that is stored. What was written before the last such change, or in another version than the one asked
for, is brought up to date when it is read, once per revision; the rest passes through untouched. Upstream decodes, defaults and prunes
on every read. An object in a version that the definition has lost cannot be read, and nothing is listed or watched beside it, until the
definition has the version again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tetrapod.extensions.custom.forms import Forms, LostVersion
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.storage.forwarding import ForwardingStorage, ShownWatch
from tetrapod.generic.storage.interface import (
    Entry,
    ListPage,
    ListQuery,
    Preconditions,
    ResourceStorage,
    TryUpdate,
    Updated,
    Watch,
    WatchQuery,
)
from tetrapod.generic.storage.unreadable import NotDecodable, not_ready, object_text
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError, internal_error

_AT_ONCE: Final = 100
_NO_PRECONDITIONS: Final = Preconditions()
_NOWHERE: Final = "-"
_ROOT: Final = "/registry"
"""Before the keys that lists tell of."""


@dataclass
class Currency:
    """`current_from`: all that was written after it is up to date; None while in doubt. All versions of a resource share it."""

    current_from: int | None


class CurrentStorage(ForwardingStorage):
    """Implements `ResourceStorage` over another. `prefix` is how finished bytes of the version begin."""

    def __init__(self, inner: ResourceStorage, resource: GroupResource, prefix: bytes, forms: Forms, currency: Currency) -> None:
        super().__init__(inner)
        self._resource = resource
        self._prefix = prefix
        self._forms = forms
        self._all_readable = False
        self.currency = currency

    def current(self, entry: Entry) -> Entry:
        """
        Raises:
            NotDecodable: in a version that there is no more.
        """
        known_from = self.currency.current_from
        if known_from is not None and entry.revision > known_from and entry.raw.startswith(self._prefix) and self._forms.whole:
            return entry
        made: Entry | None = entry.representations.get(self)
        if made is None:
            obj = entry.object()
            try:
                self._forms.read(obj)
            except LostVersion as lost:
                raise NotDecodable(
                    str(lost), entry.revision, f"{_ROOT}/{self._resource.group}/{self._resource.resource}/{entry.key}"
                ) from None
            fresh = Unstored(entry.key, obj, entry.revision)
            made = entry.representations[self] = entry if fresh.raw == entry.raw else fresh
        return made

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        entry = await self._inner.get(key, resource_version)
        try:
            return None if entry is None else self.current(entry)
        except NotDecodable as error:
            raise internal_error(object_text(error, error.key.removeprefix(_ROOT))) from None

    async def list(self, query: ListQuery) -> ListPage:
        page = await self._inner.list(query)
        entries: list[Entry] = []
        for start in range(0, len(page.entries), _AT_ONCE):
            if start and entries[-1] is not page.entries[start - 1]:
                await asyncio.sleep(0)
            try:
                entries += map(self.current, page.entries[start : start + _AT_ONCE])
            except NotDecodable as error:
                raise not_ready(error, self._resource) from None
        return page._replace(entries=entries)

    async def watch(self, query: WatchQuery) -> Watch:
        if not self._all_readable:
            await self.list(ListQuery(resource_version="0"))
            self._all_readable = True
        return ShownWatch(await self._inner.watch(query), self.current)

    async def rehearsed(self, entry: Entry) -> Entry:
        """What would come back of an object if it were stored, for a dry run."""
        if not self._forms.differ:
            return entry
        obj = self._forms.written(entry.object())
        self._forms.read(obj)
        return Unstored(entry.key, obj, entry.revision)

    async def create(self, key: str, obj: Object, ttl: int = 0) -> Entry:
        return self.current(await self._inner.create(key, self._forms.written(obj), ttl))

    async def guaranteed_update(
        self, key: str, try_update: TryUpdate, *, preconditions: Preconditions = _NO_PRECONDITIONS, allow_absent: bool = False
    ) -> Entry:
        async def on_current(obj: Object | None, entry: Entry | None) -> Updated | None:
            try:
                made = None if entry is None else self.current(entry)
            except NotDecodable as error:
                raise StatusError(500, "", error.what) from None
            updated = await (try_update(obj, entry) if made is None or made is entry else try_update(made.object(), made))
            return None if updated is None else updated._replace(object=self._forms.written(updated.object))

        return self.current(await self._inner.guaranteed_update(key, on_current, preconditions=preconditions, allow_absent=allow_absent))

    async def delete(
        self, key: str, *, preconditions: Preconditions = _NO_PRECONDITIONS, validate: Callable[[Entry], Awaitable[None]] | None = None
    ) -> Entry:
        async def check(entry: Entry) -> None:
            assert validate is not None
            await validate(self.current(entry))

        entry = await self._inner.delete(key, preconditions=preconditions, validate=None if validate is None else check)
        return self.current(entry)


async def revision_now(storage: ResourceStorage) -> int:
    page = await storage.list(ListQuery(prefix=_NOWHERE))
    return int(page.resource_version)
