"""A storage that returns custom resources in one version, as the current definition specifies it.

It is used without a conversion webhook. Objects stay stored as they were written. Since then the schema may have gained
defaults and lost fields, or the storage version may have changed. An object that was written before the last such
change, or in another version than the requested one, is converted when it is read, once per revision. So is one that
was written past the API, if it lacks a default or its uid. All others pass through unchanged. Upstream decodes,
defaults and prunes on every read.

An object in a version that the definition no longer has cannot be read. Lists and watches that include it fail until
the definition has the version again. The same applies to an object with a malformed embedded resource
(x-kubernetes-embedded-resource) that only the requested version declares, since upstream does not repair that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from tetrapod.extensions.custom.version_codec import UnknownStoredVersion, VersionCodec
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.registry.errors import KEY_ROOT, unreadable_status, update_status
from tetrapod.generic.storage.cacher.entry import IncompleteEntry
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.unreadable import NotDecodable, not_ready
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.wrappers import ForwardingStorage, MappedWatch
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, TryUpdate, Updated
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.schema.decode import DecodeError
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.status import StatusError

_AT_ONCE: Final = 100
_NOWHERE: Final = "-"
_UID: Final = b'"uid":"'
"""Bytes that every object has which was written by the API. One without them was written to the store by another
program, so that it may have unknown fields. To search for them is cheaper than to decode metadata.uid.
"""


@dataclass
class Currency:
    """The revision from which stored objects of a custom resource are current; all its versions share one instance.

    Attributes:
        current_from: the revision after which all written objects match the current definition; None while unknown.
    """

    current_from: int | None


class CurrentStorage(ForwardingStorage):
    """A storage that returns objects in one version, with the defaults and fields of the current schema.

    It wraps the storage that holds the objects as they were written, possibly under an earlier revision of the
    definition.

    Args:
        inner: the wrapped storage.
        resource: the custom resource, for errors.
        prefix: the first bytes of each encoded object of this version: its kind and apiVersion.
        codec: converts objects between their stored form and this version.
        currency: the revision after which written objects match the current definition, shared by all versions.
    """

    def __init__(
        self, inner: ResourceStorage, resource: GroupResource, prefix: bytes, codec: VersionCodec, currency: Currency
    ) -> None:
        super().__init__(inner)
        self._resource = resource
        self._prefix = prefix
        self._codec = codec
        self._all_readable = False
        self.currency = currency

    def current(self, entry: Entry) -> Entry:
        """Return the entry in this version: the same entry if nothing has to be converted, else a converted one.

        The converted entry is cached together with the stored one.

        Raises:
            NotDecodable: the object is in a version that no longer exists, or an embedded resource that only this
                version declares is malformed.
        """
        current_from = self.currency.current_from
        if (
            current_from is not None
            and entry.revision > current_from
            and self._codec.defaulted
            and entry.head.startswith(self._prefix)
            and _UID in entry.item
            and entry.__class__ is not IncompleteEntry
        ):
            return entry
        converted: Entry | None = entry.representations.get(self)
        if converted is None:
            obj = entry.object()
            try:
                self._codec.decode_for_request(obj)
            except (UnknownStoredVersion, CoerceError, DecodeError) as error:
                raise NotDecodable(
                    str(error),
                    entry.revision,
                    f"{KEY_ROOT}/{self._resource.group}/{self._resource.resource}/{entry.key}",
                ) from None
            fresh = Unstored(entry.key, obj, entry.revision)
            converted = entry.representations[self] = entry if fresh.raw == entry.raw else fresh
        return converted

    def _encoded(self, obj: Object) -> Object:
        """Return the object to store: itself, or a copy in the storage version.

        Raises:
            StatusError: 500, an embedded resource that only the storage version declares is malformed.
        """
        try:
            return self._codec.encode(obj)
        except (CoerceError, DecodeError) as error:
            raise StatusError(500, "", str(error)) from None

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        entry = await self._inner.get(key, resource_version)
        try:
            return None if entry is None else self.current(entry)
        except NotDecodable as error:
            raise unreadable_status(error.first, error.first.key) from None

    async def list(self, query: ListQuery) -> ListPage:
        page = await self._inner.list(replace(query, predicate=self._on_current(query.predicate)))
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
        return MappedWatch(
            await self._inner.watch(replace(query, predicate=self._on_current(query.predicate))), self.current
        )

    def _on_current(self, predicate: Predicate) -> Predicate:
        """Return the predicate with its field selector applied to objects in this version, with their defaults.

        The label selector stays, because labels are the same in every version. An object that cannot be converted
        matches, so that the request fails when the object is read.
        """
        if predicate.fields is None:
            return predicate
        matches = predicate.fields

        def matches_current(entry: Entry) -> bool:
            try:
                return matches(self.current(entry))
            except NotDecodable:
                return True  # so that the request fails when the entry is read

        return replace(predicate, fields=matches_current)

    async def dry_run(self, entry: Entry) -> Entry:
        """Return the entry as it would be read back if it were stored, for a dry run. Nothing is stored.

        Implements `DryRunStorage.dry_run`.

        Raises:
            StatusError: 500, an embedded resource is malformed for the storage version.
        """
        if not self._codec.versions_differ:
            return entry
        obj = self._encoded(entry.object())
        self._codec.decode_for_request(obj)
        return Unstored(entry.key, obj, entry.revision)

    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        async def is_current(entry: Entry) -> bool:
            try:
                current = self.current(entry)
            except NotDecodable:
                return False
            return readable is None or await readable(current)

        await self._inner.delete_unreadable(key, dry_run=dry_run, readable=is_current)

    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        return self.current(await self._inner.create(key, self._encoded(obj), ttl, large=large))

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        allow_absent: bool = False,
    ) -> Entry:
        async def on_current(obj: Object | None, entry: Entry | None) -> Updated | None:
            try:
                converted = None if entry is None else self.current(entry)
            except NotDecodable as error:
                raise update_status(error.first) from None
            updated = await (
                try_update(obj, entry)
                if converted is None or converted is entry
                else try_update(converted.object(), converted)
            )
            return None if updated is None else updated._replace(object=self._encoded(updated.object))

        return self.current(
            await self._inner.guaranteed_update(key, on_current, preconditions=preconditions, allow_absent=allow_absent)
        )

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        async def check(entry: Entry) -> None:
            assert validate is not None
            await validate(self.current(entry))

        entry = await self._inner.delete(key, preconditions=preconditions, validate=None if validate is None else check)
        return self.current(entry)


async def revision_now(storage: ResourceStorage) -> int:
    """Return the current revision of the storage, by listing a prefix without objects. Raises Unavailable."""
    page = await storage.list(ListQuery(prefix=_NOWHERE))
    return int(page.resource_version)
