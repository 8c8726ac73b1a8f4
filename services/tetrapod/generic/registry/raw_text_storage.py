"""`RawTextStorage`: a storage wrapper for kinds with fields of the type runtime.RawExtension, which keep their text.

Stored objects have the texts beside the fields (machinery/raw_extensions.py). The objects of entries that this wrapper
returns have `Verbatim` values instead, so that protobuf contains the texts, and updates compare them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from tetrapod.generic.registry.entry import Unstored, changed_entry
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.wrappers import ForwardingStorage, MappedWatch
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, TryUpdate, Updated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.raw_extensions import beside_fields, into_fields, may_have_texts
from tetrapod.machinery.serializer.raw_json import RawPath, carry


class RawTextEntry(Unstored):
    """An entry of an object with `Verbatim` values, which its copies keep."""

    __slots__ = ()

    def object(self) -> Object:
        copy = super().object()
        carry(self._object, copy)
        return copy


class RawTextStorage(ForwardingStorage):
    """A `ResourceStorage` that stores the texts of RawExtension fields, and returns objects with `Verbatim` values.

    Args:
        inner: the storage of the objects as they are stored.
        paths: the paths of the fields.
    """

    def __init__(self, inner: ResourceStorage, paths: Sequence[RawPath]) -> None:
        super().__init__(inner)
        self._paths = paths

    def _shown(self, entry: Entry) -> Entry:
        """Return an entry without texts beside its fields; the same entry if it has none.

        The result is cached in the entry.
        """
        if not may_have_texts(entry.item, self._paths):
            return entry
        return changed_entry(entry, self, self._show_texts, RawTextEntry)

    def _show_texts(self, obj: Object) -> bool:
        return into_fields(obj, self._paths)

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        entry = await self._inner.get(key, resource_version)
        return None if entry is None else self._shown(entry)

    async def list(self, query: ListQuery) -> ListPage:
        page = await self._inner.list(query)
        return page._replace(entries=list(map(self._shown, page.entries)))

    async def watch(self, query: WatchQuery) -> Watch:
        return MappedWatch(await self._inner.watch(query), self._shown)

    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        return self._shown(await self._inner.create(key, beside_fields(obj, self._paths), ttl, large=large))

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        allow_absent: bool = False,
    ) -> Entry:
        async def attempt(current: Object | None, entry: Entry | None) -> Updated | None:
            if current is not None:
                into_fields(current, self._paths)
            updated = await try_update(current, None if entry is None else self._shown(entry))
            return None if updated is None else updated._replace(object=beside_fields(updated.object, self._paths))

        return self._shown(
            await self._inner.guaranteed_update(key, attempt, preconditions=preconditions, allow_absent=allow_absent)
        )

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        async def of_shown(entry: Entry) -> None:
            assert validate is not None
            await validate(self._shown(entry))

        check = None if validate is None else of_shown
        return self._shown(await self._inner.delete(key, preconditions=preconditions, validate=check))
