"""`Cacher`: the storage of one resource for the registry. Reads come from a watch cache, writes go to the backend.

It uses no resources until the first read, which starts the background task that fills the cache and follows the
store.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.observability.tracing.spans import current_span, traced
from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.storage import metrics
from tetrapod.generic.storage.backend import Backend, is_key, prefix_end
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.consistency import ConsistencyChecker
from tetrapod.generic.storage.cacher.counters import counters_of
from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.entry_reader import EntryReader
from tetrapod.generic.storage.cacher.freshness import Freshness
from tetrapod.generic.storage.cacher.history import History
from tetrapod.generic.storage.cacher.listing import Lister
from tetrapod.generic.storage.cacher.reflector import Reflector
from tetrapod.generic.storage.cacher.watching import CacheWatch
from tetrapod.generic.storage.cacher.window import MOST
from tetrapod.generic.storage.cacher.writing import Writer
from tetrapod.generic.storage.config import StorageConfig, StoredDefaults
from tetrapod.generic.storage.entry import Entry, IndexedValue
from tetrapod.generic.storage.errors import TooLargeResourceVersion
from tetrapod.generic.storage.leases import LeaseManager
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.resource_version import parse_resource_version
from tetrapod.generic.storage.unreadable import NotReady
from tetrapod.generic.storage.watch import Watch, WatchEvent
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions, TryUpdate
from tetrapod.machinery.go_packages import OWN_SCHEMES, go_type
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request, resource_expired, too_large_resource_version

BOOKMARK_SECONDS: Final = 60.0
_TOO_OLD: Final = "The resourceVersion for the provided watch is too old."
"""The error of a watch from a compacted version of the store, for resources whose reads the cache does not answer."""

_LONGEST_RETRY: Final = 3
"""Seconds. After a random number of seconds up to this, clients retry a watch from a version of the future."""


def _attributes(cacher: Cacher, key: str, *_: object, **__: object) -> dict[str, Any]:
    """Return the attributes of the span of a method of `Cacher` about one key. The parameters are those of the method.

    As upstream, `key` is the key without the prefix of the whole store (--etcd-prefix).
    """
    config = cacher.config
    return {"key": f"/{config.prefix}/{key.removeprefix('/')}", "resource": str(config.group_resource)}


def _get_attributes(cacher: Cacher, key: str, resource_version: str = "") -> dict[str, Any]:
    return {**_attributes(cacher, key), "resource-version": resource_version}


def _write_attributes(cacher: Cacher, key: str, *_: object, **__: object) -> dict[str, Any]:
    config = cacher.config
    group = config.group_resource.group
    custom = config.is_extension and group not in OWN_SCHEMES
    return {**_attributes(cacher, key), "type": go_type(group, config.kind, custom=custom)}


def _type_attribute(cacher: Cacher, *_: object) -> dict[str, Any]:
    return {"type": str(cacher.config.group_resource)}


class Cacher:
    """The storage of one resource: reads come from a watch cache, writes go to the store. Implements `ResourceStorage`.

    Args:
        backend: the store; `close` leaves it open.
        config: the key prefix, the kind and the encoding of the resource's objects in the store.
        root: the prefix of the keys of all resources, without a slash at its end.
        leases: the leases for objects with a TTL, shared with other resources; None creates separate ones.
        window: the number of recent changes to keep.
        bookmark_seconds: the longest time between two bookmarks for a watch that wants them.
        scheduling: the limit of events that are applied in one step of the event loop.
        cached_reads: whether the watch cache answers reads. Otherwise the store answers them, and the cache is filled
            for watches only.
        reloads: returns how often the configuration of the objects' encryption was replaced; None for a resource that
            is never encrypted.
    """

    def __init__(  # noqa: PLR0913 - keywords with defaults
        self,
        backend: Backend,
        config: StorageConfig,
        *,
        root: str = "/registry",
        leases: LeaseManager | None = None,
        window: int = MOST,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        scheduling: FairScheduling = DEFAULT,
        cached_reads: bool = True,
        reloads: Callable[[], int] | None = None,
    ) -> None:
        self.config = config
        self.prefix = f"{root}/{config.prefix}/"
        self._backend = backend = metrics.Measured(backend, config)
        counters = counters_of(*config.group_resource)
        reader = EntryReader(config.defaults)
        self._cache = Cache(len(self.prefix), counters, reader, window=window, compressed=config.compressed)
        self._reflector = Reflector(backend, self.prefix, self._cache, config.group_resource, scheduling)
        self._checker = ConsistencyChecker(backend, self.prefix, self._cache, self._reflector, config.group_resource)
        self._reflector.on_begin = self._checker.schedule
        self._freshness = Freshness(backend, self._cache, self._reflector)
        self._history = History(backend, self.prefix, self._cache)
        lists = metrics.Lists(*config.group_resource)
        self._lister = Lister(backend, self.prefix, self._cache, self._freshness, lists, cached=cached_reads)
        self._cached_reads = cached_reads
        self._reloads = reloads
        self._known_reloads = reloads() if reloads is not None else 0
        self._former_revision = 0
        self._writer = Writer(backend, self.prefix, self._cache, config, leases or LeaseManager(backend))
        self._bookmark_seconds = bookmark_seconds
        self._bookmark_timer: asyncio.TimerHandle | None = None
        self._bookmark_task: asyncio.Task[None] | None = None
        metrics.register(self)

    def set_defaults(self, defaults: StoredDefaults) -> None:
        """Complete stored objects that are read from now on with their defaults."""
        self._cache.reader.defaults = defaults

    # Reads

    @traced("cacher.Get", _get_attributes)
    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        if not self._cached_reads:
            return await self._uncached(key, resource_version)
        try:
            if resource_version in {"", "0"}:
                if not self._cache.filled:
                    self._reflector.begin()
                    return await self._from_backend(key)
                if not resource_version and not await self._freshness.latest():
                    return await self._from_backend(key)
            elif not await self._freshness.at_least(parse_resource_version(resource_version)):
                return await self._from_backend(key)
        except NotReady:  # another object may be the unreadable one, so read this object directly
            return await self._from_backend(key)
        span = current_span()
        span.event("watchCache locked acquired")
        span.event("watchCache fresh enough")
        entry = self._cache.entries.get(key)
        span.event("GetByKey success")
        if entry is None or resource_version or entry.revision > self._decrypted_formerly():
            return entry
        return await self._from_backend(key)

    def _decrypted_formerly(self) -> int:
        """Return the revision up to which objects may have been decrypted with a former configuration; 0 without one.

        A consistent read of such an object reads it from the store, to find out whether it can still be decrypted.
        """
        if self._reloads is not None and (reloads := self._reloads()) != self._known_reloads:
            self._known_reloads, self._former_revision = reloads, self._reflector.revision()
        return self._former_revision

    async def _uncached(self, key: str, resource_version: str) -> Entry | None:
        """Read an object from the store, which must have reached a resource version. Return None if it does not exist.

        Raises:
            StatusError: 400, the resource version is invalid. Upstream's cache returns 500 for that.
            TooLargeResourceVersion: the store has not reached it.
        """
        try:
            revision = parse_resource_version(resource_version)
        except ValueError as error:
            raise bad_request(f"invalid resource version: {error}") from None
        await self._lister.check_reached(revision)
        return await self._from_backend(key)

    @traced("Get etcd3", _attributes)
    async def _from_backend(self, key: str) -> Entry | None:
        if not is_key(key):
            return None
        span = current_span()
        kv = await self._backend.get(self.prefix + key)
        span.event("Get call succeeded")
        if kv is None:
            return None
        span.event("TransformFromStorage succeeded")
        entry = await self._cache.reader.load(key, kv)
        span.event("Decode succeeded")
        return entry

    @traced("cacher.GetList", _type_attribute)
    async def list(self, query: ListQuery) -> ListPage:
        return await self._lister.list(query)

    def cached(self) -> Entries | None:
        return self._cache.entries if self._cached_reads and self._cache.filled else None

    async def count(self) -> int:
        if self._cache.filled:
            return len(self._cache.entries)
        return (await self._backend.range(self.prefix, prefix_end(self.prefix), count_only=True)).total

    def statistics(self) -> tuple[int, int] | None:
        """Return the number of objects and their average size in bytes, or None if the cache is not filled."""
        entries = self._cache.entries
        return (len(entries), entries.average_size()) if self._cache.filled else None

    def capacity(self) -> int:
        """Return the size that upstream's ring buffer of recent changes would have, for its metric."""
        return self._cache.window.capacity

    async def ready(self) -> None:
        await self._freshness.filled()

    @property
    def revision(self) -> int:
        """The revision up to which the cache is current; 0 before it has been filled."""
        return self._reflector.revision()

    # Watches

    @traced("cacher.Watch", _type_attribute)
    async def watch(self, query: WatchQuery) -> Watch:
        requested = parse_resource_version(query.resource_version)
        if requested and query.initial_events:
            try:
                if not self._cached_reads:
                    await self._lister.check_reached(requested)
                await self._freshness.at_least(requested)
            except TooLargeResourceVersion as error:
                return self._end_as_too_large(query, error)
        elif query.resource_version or not await self._freshness.latest():
            await self._freshness.filled()
        resumed = bool(requested) and not query.initial_events
        complete = not resumed or requested >= self._cache.window.start or await self._history.reach(requested)
        index = None if query.single or resumed else query.predicate.index
        if index is not None:
            await self._cache.index.fill(index.of)
        # Nothing is awaited below this line, so the watch begins exactly where its initial state ends.
        span = current_span()
        span.event("watchCache locked acquired")
        span.event("watchCache fresh enough")
        now = self._reflector.revision()
        watch = CacheWatch(self._cache.fanout, query, max(requested, now))
        if not complete:
            return self._end_as_too_old(watch, requested)
        if query.initial_events or (query.initial_events is None and not requested):
            end = (
                WatchEvent("BOOKMARK", None, now, initial_end=True)
                if query.initial_events and query.bookmarks
                else None
            )
            watch.begin_with(self._snapshot(query, index), end)
        elif resumed:
            watch.begin_after(self._events_since(query, requested))
        self._cache.fanout.add(watch)
        if query.bookmarks and not self._bookmarks_scheduled:
            self._schedule_bookmarks()
        return watch

    def _snapshot(self, query: WatchQuery, index: IndexedValue | None) -> Sequence[StoredEntry]:
        """Return the entries with which a watch begins, before its selectors are applied.

        Args:
            query: the query of the watch.
            index: the value of the indexed field that the watch requires; None if it requires none.
        """
        if query.single:
            entry = self._cache.entries.get(query.prefix)
            return [] if entry is None else [entry]
        indexed = None if index is None else self._cache.index.within(index, query.prefix)
        return self._cache.entries.within(query.prefix) if indexed is None else indexed

    def _events_since(self, query: WatchQuery, revision: int) -> Sequence[WatchEvent]:
        """Return the events that a watch which resumes at `revision` has missed, in order.

        The window must reach back to `revision`.
        """
        events = []
        for change in self._cache.window.since(revision):
            matches = change.key == query.prefix if query.single else change.key.startswith(query.prefix)
            if matches and (event := change.event(query.predicate)) is not None:
                events.append(event)
        return events

    def _end_as_too_old(self, watch: CacheWatch, revision: int) -> Watch:
        cached = f"too old resource version: {revision} ({self._cache.window.start})"
        return _ended(watch, resource_expired(cached if self._cached_reads else _TOO_OLD))

    def _end_as_too_large(self, query: WatchQuery, error: TooLargeResourceVersion) -> Watch:
        """Return a watch that ends with the error as an event.

        Without a watch cache, the client is asked to wait a random time, as by upstream's store.

        Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go, Cacher.Watch, and etcd3/watcher.go,
        startWatching
        """
        retry_after = error.retry_seconds if self._cached_reads else random.randint(1, _LONGEST_RETRY)
        watch = CacheWatch(self._cache.fanout, query, error.requested)
        return _ended(watch, too_large_resource_version(str(error), retry_after))

    @property
    def _bookmarks_scheduled(self) -> bool:
        return self._bookmark_timer is not None or (self._bookmark_task is not None and not self._bookmark_task.done())

    def _schedule_bookmarks(self) -> None:
        seconds = self._bookmark_seconds * random.uniform(0.75, 1.0)
        self._bookmark_timer = asyncio.get_running_loop().call_later(seconds, self._bookmark)

    def _bookmark(self) -> None:
        self._bookmark_timer = None
        self._bookmark_task = asyncio.create_task(self._send_bookmarks(), name=f"bookmarks {self.prefix}")

    async def _send_bookmarks(self) -> None:
        """Send a bookmark to each watch that wants them, and schedule the next ones if there are such watches.

        Before that, wait up to three seconds until the cache has reached the current revision of the store, so that the
        bookmarks of a resource without changes advance too. If the store does not answer, they have the cache's
        revision.
        """
        with contextlib.suppress(Unavailable):
            await self._freshness.latest()
        if await self._cache.fanout.bookmark():
            self._schedule_bookmarks()

    # Writes

    @traced("Create etcd3", _write_attributes)
    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        return await self._writer.create(key, obj, ttl, large=large)

    @traced("GuaranteedUpdate etcd3", _write_attributes)
    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        allow_absent: bool = False,
    ) -> Entry:
        return await self._writer.guaranteed_update(key, try_update, preconditions, allow_absent)

    @traced("Delete etcd3", _attributes)
    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        return await self._writer.delete(key, preconditions, validate)

    @traced("Delete etcd3", _attributes)
    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        await self._writer.delete_unreadable(key, readable, dry_run=dry_run)

    async def close(self) -> None:
        if self._bookmark_timer is not None:
            self._bookmark_timer.cancel()
        if self._bookmark_task is not None:
            self._bookmark_task.cancel()
            await asyncio.gather(self._bookmark_task, return_exceptions=True)
        await self._checker.close()
        self._cache.fanout.close()
        await self._reflector.close()


def _ended(watch: CacheWatch, error: StatusError) -> Watch:
    """Return the watch, which ends with the error as an event."""
    watch.push([WatchEvent("ERROR", None, 0, status=error.to_status())])
    watch.close()
    return watch
