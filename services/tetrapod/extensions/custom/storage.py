"""`CurrentStorage`: stored custom resources as the present definition would have stored them.

An object keeps the bytes with which it was written; since then the schema may have gained defaults and lost fields, or another
version may have become the one that is stored. What was written before the last such change is brought up to date when it is
read, once per revision; the rest passes through untouched. Upstream decodes, defaults and prunes on every read. An object in a version
that the definition has lost cannot be read, and nothing is listed or watched beside it, until the definition has the version again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

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


class LostVersion(Exception):
    """An object says that it is of a version that its definition has not."""


class CurrentStorage(ForwardingStorage):
    """Implements `ResourceStorage` over another. `current_from`: all that was written after it is up to date; None while in doubt."""

    def __init__(
        self, inner: ResourceStorage, resource: GroupResource, prefix: bytes, update: Callable[[Object], None], current_from: int | None
    ) -> None:
        super().__init__(inner)
        self._resource = resource
        self._prefix = prefix
        self._update = update
        self._all_readable = False
        self.current_from = current_from

    def current(self, entry: Entry) -> Entry:
        """
        Raises:
            NotDecodable: in a version that there is no more.
        """
        known_from = self.current_from
        if known_from is not None and entry.revision > known_from and entry.raw.startswith(self._prefix):
            return entry
        made: Entry | None = entry.representations.get(self)
        if made is None:
            obj = entry.object()
            try:
                self._update(obj)
            except LostVersion as lost:
                raise NotDecodable(
                    str(lost), entry.revision, f"{_ROOT}/{self._resource.group}/{self._resource.resource}/{entry.key}"
                ) from None
            fresh = Unstored(entry.key, obj, entry.revision)
            made = entry.representations[self] = entry if fresh.raw == entry.raw else fresh
        return made

    async def settle(self) -> None:
        """From now on nobody writes by an older definition."""
        page = await self._inner.list(ListQuery(prefix=_NOWHERE))
        self.current_from = int(page.resource_version)

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

    async def create(self, key: str, obj: Object, ttl: int = 0) -> Entry:
        return await self._inner.create(key, obj, ttl)

    async def guaranteed_update(
        self, key: str, try_update: TryUpdate, *, preconditions: Preconditions = _NO_PRECONDITIONS, allow_absent: bool = False
    ) -> Entry:
        async def on_current(obj: Object | None, entry: Entry | None) -> Updated | None:
            try:
                made = None if entry is None else self.current(entry)
            except NotDecodable as error:
                raise StatusError(500, "", error.what) from None
            return await try_update(obj, entry) if made is None or made is entry else await try_update(made.object(), made)

        return await self._inner.guaranteed_update(key, on_current, preconditions=preconditions, allow_absent=allow_absent)

    async def delete(
        self, key: str, *, preconditions: Preconditions = _NO_PRECONDITIONS, validate: Callable[[Entry], Awaitable[None]] | None = None
    ) -> Entry:
        return self.current(await self._inner.delete(key, preconditions=preconditions, validate=validate))
