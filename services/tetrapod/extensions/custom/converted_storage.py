"""A storage that returns custom resources in the version of the request, for definitions with a conversion webhook.

Objects are converted from the version in which they were stored when they are read, and to the storage version when
they are written; version_codec.py prunes and sets defaults before and after. A conversion is made once per revision of
an object and cached with the entry.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from tetrapod.extensions.custom.converted_watch import ConvertedWatch
from tetrapod.extensions.custom.shared_conversion import SharedConversion
from tetrapod.extensions.custom.version_codec import UnknownStoredVersion, VersionCodec
from tetrapod.generic.endpoints.conversion import type_prefix
from tetrapod.generic.registry.entry import unstored
from tetrapod.generic.registry.errors import KEY_ROOT, unreadable_status, update_status
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.entry import EVERYTHING, Entry, Predicate
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.unreadable import NotDecodable, Unreadable, UnreadableObject, UnreadableObjects, not_ready
from tetrapod.generic.storage.watch import Watch
from tetrapod.generic.storage.wrappers import ForwardingStorage
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, TryUpdate, Updated
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, Object
from tetrapod.machinery.schema.decode import DecodeError
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.status import StatusError

_MOST_ENTRIES: Final = 200
"""The most entries that are converted at once."""
_MOST_BYTES: Final = 1 << 20
"""Bytes of the entries that are converted at once; a single entry may have more."""
_QUICK_FAILURE: Final = 1.0
"""Seconds in which a conversion must have failed so that its objects are converted again, one by one.

The error of a list names the reason of each object. A webhook that does not respond would delay the list for each.
"""


class Convert(Protocol):
    """A function that converts custom objects to a version by a webhook: `WebhookConverter.convert`."""

    def __call__(self, objects: Sequence[Object], version: str, *, large: bool = False) -> Awaitable[list[Object]]: ...


class ConvertedStorage(ForwardingStorage):
    """A `ResourceStorage` that converts the objects of another one with a webhook.

    Args:
        inner: the storage of the objects as they are stored.
        convert: converts objects to another version; see `WebhookConverter.convert`.
        kind: the kind in the version of the requests.
        stored: the name of the storage version.
        codec: the codec of the version of the requests.
        resource: the resource, for errors.
        prefix: the prefix of the stored keys, for errors.
    """

    def __init__(
        self,
        inner: ResourceStorage,
        convert: Convert,
        kind: GroupVersionKind,
        stored: str,
        codec: VersionCodec,
        resource: GroupResource,
        prefix: str,
    ) -> None:
        super().__init__(inner)
        self._head = type_prefix(kind.kind, kind.api_version)
        self._conversion = SharedConversion(self._convert_entries)
        self._convert, self._codec = convert, codec
        self._version, self._stored, self._prefix = kind.version, stored, prefix
        self._resource = resource

    async def read(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries in the version of the requests, from the cache or converted.

        Raises:
            StatusError: 500, with the error of the webhook.
        """
        kept: list[Entry | None] = [entry.representations.get(self) for entry in entries]
        missing = [entry for entry, made in zip(entries, kept, strict=True) if made is None]
        converted = iter(await self._conversion(missing)) if missing else iter(())
        return [next(converted) if made is None else made for made in kept]

    async def _convert_entries(self, entries: Sequence[Entry]) -> list[Entry]:
        converted: list[Entry] = []
        timer = YieldTimer()
        for portion in _portions(entries):
            objects = await self._shown(portion, timer)
            for entry, obj in zip(portion, objects, strict=True):
                await timer.yield_if_due()
                made = await unstored(entry.key, obj, entry.revision, large=len(entry.raw) >= LARGE)
                entry.representations[self] = made
                converted.append(made)
        return converted

    async def _shown(self, entries: Sequence[Entry], timer: YieldTimer) -> list[Object]:
        """Decode stored entries, convert their objects to the version of the requests, prune them and return them.

        Args:
            entries: the stored entries.
            timer: yields to the event loop between two entries, if this call has held it for long.

        Raises:
            StatusError: 500, a stored version no longer exists, or the webhook fails.
        """
        objects = []
        for entry in entries:
            await timer.yield_if_due()
            objects.append(await offloaded(len(entry.raw) >= LARGE, self._decoded, entry))
        large = sum(len(entry.raw) for entry in entries) >= LARGE
        converted = await self._convert(objects, self._version, large=large)
        await offloaded(large, _settle, converted, self._codec.prune_for_request)
        return converted

    def _decoded(self, entry: Entry) -> Object:
        obj = entry.object()
        try:
            self._codec.decode(obj)
        except UnknownStoredVersion as lost:
            raise StatusError(500, "", str(lost)) from None
        return obj

    async def _readable(self, entries: Sequence[Entry]) -> list[Entry]:
        """Convert entries as `read` does, but report the first one that could not be converted as a corrupt object.

        Raises:
            StatusError: 500, an entry could not be converted; the text names its key.
        """
        try:
            return await self.read(entries)
        except StatusError as error:
            entry = next((e for e in entries if self not in e.representations), entries[0])
            raise unreadable_status(_unreadable(entry, error), f"/{self._prefix}/{entry.key}") from None

    async def _written(self, obj: Object, large: bool) -> Object:
        """Return the object of a write request, converted to the storage version and pruned. `obj` may be modified.

        Args:
            obj: the object, in the version of the request.
            large: whether to encode and prune the object in a thread, because that would block the event loop.

        Raises:
            StatusError: 500, the webhook failed, or it returned an embedded resource with malformed metadata.
        """
        converted = await self._convert([obj], self._stored, large=large)
        await offloaded(large, _settle, converted, self._codec.prune_for_storage)
        return converted[0]

    async def dry_run(self, entry: Entry) -> Entry:
        """Return the entry as it would be read back if it were stored, for a dry run. Nothing is stored.

        Implements `DryRunStorage.dry_run`.

        Raises:
            StatusError: 500, the conversion webhook failed or returned malformed metadata.
        """
        large = len(entry.raw) >= LARGE
        written = await self._written(await offloaded(large, entry.object), large)
        stored = await unstored(entry.key, written, entry.revision, large=large)
        (shown,) = await self._shown((stored,), YieldTimer())
        return await unstored(entry.key, shown, entry.revision, large=large)

    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        async def is_convertible(entry: Entry) -> bool:
            try:
                (converted,) = await self.read((entry,))
            except StatusError:
                return False
            return readable is None or await readable(converted)

        await self._inner.delete_unreadable(key, dry_run=dry_run, readable=is_convertible)

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        entry = await self._inner.get(key, resource_version)
        return None if entry is None else (await self._readable((entry,)))[0]

    async def list(self, query: ListQuery) -> ListPage:
        """Return a page of a list in the version of the requests. Implements `ResourceStorage.list`.

        Upstream fills a watch cache for each version. While it cannot, because an object cannot be converted, only the
        store answers lists, and only those with a limit and without selectors.

        Raises:
            Unreadable: objects could not be converted, and the list has a limit and no selectors.
            NotReady: objects could not be converted, and the list has no limit or has selectors.
        """
        unreadable = UnreadableObjects()
        try:
            page = await self._inner.list(replace(query, view=partial(self._view, query.predicate, unreadable)))
            unreadable.check()
        except Unreadable as error:
            if query.limit > 0 and query.predicate.empty:
                raise
            raise not_ready(error, self._resource) from None
        return page

    async def _view(
        self, predicate: Predicate, unreadable: UnreadableObjects, entries: Sequence[Entry]
    ) -> Sequence[Entry | None]:
        """Return the entries in the version of the requests, with None for those that do not match the predicate.

        The predicate applies to the converted object, because a webhook may change labels too.

        Args:
            predicate: the selectors of the list.
            unreadable: receives the objects that cannot be converted, for which the result has None too.
            entries: the entries as they are stored.

        Raises:
            Unreadable: too many objects could not be converted.
        """
        candidates = (
            entries
            if predicate.labels is None
            else [entry for entry in entries if self._may_match(predicate.labels, entry)]
        )
        converted = zip(candidates, await self._convertible(candidates, unreadable), strict=True)
        matching = {id(entry): made for entry, made in converted if made is not None and predicate.matches(made)}
        return [matching.get(id(entry)) for entry in entries]

    async def _convertible(self, entries: Sequence[Entry], unreadable: UnreadableObjects) -> Sequence[Entry | None]:
        """Convert entries as `read` does, with None in place of each that cannot be converted.

        Args:
            entries: the entries as they are stored.
            unreadable: receives the objects that cannot be converted.

        Raises:
            Unreadable: too many objects could not be converted.
        """
        began = time.monotonic()
        try:
            return await self.read(entries)
        except StatusError as error:
            missing = [entry for entry in entries if self not in entry.representations]
            text = error.message
        one_by_one = len(missing) > 1 and time.monotonic() - began < _QUICK_FAILURE
        for entry in missing:
            reason = await self._failure(entry) if one_by_one else text
            if reason:
                unreadable.add(self._not_decodable(entry, reason))
        return [entry.representations.get(self) for entry in entries]

    async def _failure(self, entry: Entry) -> str:
        """Convert one entry, which caches the result, and return the text of the error, or ""."""
        try:
            await self.read((entry,))
        except StatusError as error:
            return error.message
        return ""

    def _not_decodable(self, entry: Entry, reason: str) -> NotDecodable:
        return NotDecodable(reason, entry.revision, f"{KEY_ROOT}/{self._prefix}/{entry.key}")

    def _may_match(self, labels: Callable[[Mapping[str, str]], bool], entry: Entry) -> bool:
        """Return whether an entry may match a label selector after its conversion.

        A conversion may change labels, so only objects that are stored in the requested version are tested.

        Args:
            labels: returns whether the selector matches the labels with which it is called.
            entry: the stored object.
        """
        return not entry.head.startswith(self._head) or labels(entry.labels)

    async def watch(self, query: WatchQuery) -> Watch:
        return ConvertedWatch(await self._inner.watch(replace(query, predicate=EVERYTHING)), self.read, query.predicate)

    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        entry = await self._inner.create(key, await self._written(obj, large), ttl, large=large)
        return (await self.read((entry,)))[0]

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        allow_absent: bool = False,
    ) -> Entry:
        async def converted(obj: Object | None, entry: Entry | None) -> Updated | None:
            try:
                made = None if entry is None else (await self.read((entry,)))[0]
            except StatusError as error:
                assert entry is not None
                raise update_status(_unreadable(entry, error)) from None
            current = None
            if made is not None:
                current = await offloaded(len(made.raw) >= LARGE, made.object)
            updated = await try_update(current, made)
            if updated is None:
                return None
            return updated._replace(object=await self._written(updated.object, updated.large))

        entry = await self._inner.guaranteed_update(
            key, converted, preconditions=preconditions, allow_absent=allow_absent
        )
        return (await self.read((entry,)))[0]

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        last: list[Entry] = []

        async def check(entry: Entry) -> None:
            last[:] = await self._readable((entry,))
            if validate is not None:
                await validate(last[0])

        entry = await self._inner.delete(key, preconditions=preconditions, validate=check)
        if not last:
            return (await self._readable((entry,)))[0]
        large = len(last[0].raw) >= LARGE
        return await unstored(entry.key, await offloaded(large, last[0].object), entry.revision, large=large)


def _portions(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Divide entries into groups, each small enough for one call of the webhook, and yield the groups in order."""
    start = size = 0
    for end, entry in enumerate(entries):
        size += len(entry.raw)
        if end > start and (end - start >= _MOST_ENTRIES or size > _MOST_BYTES):
            yield entries[start:end]
            start, size = end, len(entry.raw)
    if start < len(entries):
        yield entries[start:]


def _settle(objects: Sequence[Object], settle: Callable[[Object], None]) -> None:
    """Call `settle` with each object, converting its errors about malformed metadata to a StatusError.

    Args:
        objects: the converted objects, which are modified.
        settle: prunes or otherwise changes an object in place; it raises CoerceError or DecodeError.

    Raises:
        StatusError: 500, the metadata of an embedded resource is malformed.
    """
    try:
        for obj in objects:
            settle(obj)
    except (CoerceError, DecodeError) as error:
        raise StatusError(500, "", str(error)) from None


def _unreadable(entry: Entry, error: StatusError) -> UnreadableObject:
    return UnreadableObject(entry.key, error.message, entry.revision)
