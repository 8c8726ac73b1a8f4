"""`Lister`: serves lists from the cache if its answer equals that of the backend, else from the backend.

As upstream, the revision of a list follows from resourceVersion, resourceVersionMatch, limit and continue.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/delegator (what the cache may answer);
pkg/storage/etcd3/store.go, ResolveGetListRev
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.generic.storage.backend import Backend, Compacted, FutureRevision, KeyValue, Range, is_key, prefix_end
from tetrapod.generic.storage.cacher import continue_token
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.continue_token import INCONSISTENT, Continuation
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.freshness import Freshness
from tetrapod.generic.storage.cacher.list_pages import BIGGEST_PAGE, apply_view, filter_entries, filter_view, page_of
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import TooLargeResourceVersion, TooOldResourceVersion
from tetrapod.generic.storage.latency import DECODING, LayerTimer
from tetrapod.generic.storage.metrics import Lists
from tetrapod.generic.storage.queries import ListPage, ListQuery
from tetrapod.generic.storage.resource_version import parse_resource_version
from tetrapod.generic.storage.unreadable import NotReady, Unreadable, UnreadableObjects

TOO_OLD: Final = "The resourceVersion for the provided list is too old."
TOKEN_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Snapshot(NamedTuple):
    """Entries as of one revision, in key order. It does not change when the cache does.

    Attributes:
        entries: all entries, or as many as the query needs.
        total: the number of entries that exist, which may be more than `entries` contains.
        field: the field by whose index the entries were found; "" if they were found by their keys.
    """

    entries: Sequence[StoredEntry]
    total: int
    field: str = ""


class Lister:
    """The part of a `Cacher` that serves lists, from the watch cache or from the store.

    Args:
        backend: the store, for lists that the cache cannot answer.
        prefix: the prefix of the resource's keys.
        cache: the watch cache.
        freshness: waits until the cache is recent enough.
        lists: the metrics of lists.
        cached: whether the cache may answer; otherwise the store answers all lists.
    """

    def __init__(
        self, backend: Backend, prefix: str, cache: Cache, freshness: Freshness, lists: Lists, *, cached: bool = True
    ) -> None:
        self._backend = backend
        self._cached = cached
        self._lists = lists
        self._prefix = prefix
        self._cache = cache
        self._freshness = freshness

    async def list(self, query: ListQuery) -> ListPage:
        """Return one page of a list.

        Raises:
            TooOldResourceVersion: the version or continue token has been compacted.
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version or token is malformed.
            Unavailable: the store does not answer.
            Unreadable: the store answers the list, and objects in it cannot be read.
        """
        if query.continue_token:
            continuation = continue_token.decode(query.continue_token)
            if query.single:  # upstream continues the list of all objects, and filters it
                parent, slash, _ = query.prefix.rpartition("/")
                query = replace(query, prefix=parent + slash, single=False)
            return await self._list_continued(query, continuation)
        try:
            requested = parse_resource_version(query.resource_version)
        except ValueError as error:
            raise ValueError(f"invalid resource version: {error}") from None
        if query.match == "Exact" or (not query.match and query.limit and requested and not query.single):
            return await self._list_at(query, requested, "")
        if not query.resource_version:
            return await self._list_latest(query, "")
        if not self._cached or (query.single and query.limit and requested and not query.match):
            await self.check_reached(requested)
            return await self._from_backend(query, "", 0)
        try:
            if requested == 0:
                await self._freshness.filled()
                return await self._from_cache(query, limit=0)
            if await self._freshness.at_least(requested):
                return await self._from_cache(query, limit=query.limit)
        except NotReady:
            if not _has_only_a_limit(query):
                raise
        return await self._from_backend(query, "", 0)

    async def check_reached(self, revision: int) -> None:
        """Check that the store has reached a revision. 0 is always reached.

        Raises:
            TooLargeResourceVersion: it has not.
        """
        if revision and revision > (current := await self._backend.revision()):
            raise TooLargeResourceVersion(revision, current, retry_seconds=0)

    async def _list_continued(self, query: ListQuery, continuation: Continuation) -> ListPage:
        if query.resource_version not in {"", "0"}:
            raise ValueError("specifying resource version is not allowed when using continue")
        if query.resource_version == "0" and self._cached:
            query = replace(query, limit=0)  # upstream ignores the limit for resourceVersion=0, also on later pages
        start = query.prefix + continuation.start
        if continuation.revision == INCONSISTENT:
            return await self._list_latest(query, start)
        try:
            return await self._list_at(query, continuation.revision, start)
        except TooOldResourceVersion:
            fresh = continue_token.encode(Continuation(continuation.start, INCONSISTENT))
            raise TooOldResourceVersion(TOKEN_TOO_OLD, fresh) from None

    async def _list_latest(self, query: ListQuery, start: str) -> ListPage:
        if not self._cached:
            return await self._from_backend(query, start, 0)
        cheap = query.limit > 0 and _is_plain(query)  # the store needs to read only one page
        try:
            span = current_span()
            span.event("Ready")
            if await self._freshness.latest(wait_for_fill=not cheap):
                span.event("getCurrentRV success")
                self._cache.counters.consistent += 1
                return await self._from_cache(query, start, limit=query.limit)
        except NotReady:
            # A cache that was filled before cannot catch up, in which case upstream reads the store.
            if self._cache.forgotten:
                await self._check_fallback()
            elif not _has_only_a_limit(query):
                raise
            return await self._from_backend(query, start, 0)
        if self._backend.progress_reliable and self._cache.filled:
            await self._check_fallback()
            self._cache.counters.fallbacks += 1
        return await self._from_backend(query, start, 0)

    async def _check_fallback(self) -> None:
        """Check that the store may answer a consistent read because the cache did not catch up in time.

        Raises:
            NotReady: the gate ConsistentListFromCacheSkipTimeoutFallback asks clients to retry instead.
        """
        if feature_gates.enabled("ConsistentListFromCacheSkipTimeoutFallback"):
            self._cache.counters.skipped_fallbacks += 1
            behind = TooLargeResourceVersion(await self._backend.revision(), self._freshness.revision())
            raise NotReady(f"Timeout: {behind}")

    async def _list_at(self, query: ListQuery, revision: int, start: str) -> ListPage:
        """List exactly at `revision`, from the key `start` on.

        The list is computed from the cache by undoing later changes, or read from the store if the cache no longer has
        them. A list of one name is always read from the store, which does not wait for the revision.

        Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go, ShouldDelegateExactRV

        Raises:
            TooOldResourceVersion: the revision has been compacted.
            TooLargeResourceVersion: the revision was not reached in time.
        """
        from_cache = (
            self._cached
            and not query.single
            and self._cache.consistent
            and feature_gates.enabled("ListFromCacheSnapshot")
        )
        if not from_cache or not await self._loaded():
            return await self._from_backend(query, start, revision)
        await self._check_revision(revision)
        is_reached = revision <= self._freshness.revision() or await self._freshness.at_least(revision)
        undo = self._cache.window.undo(revision) if is_reached else None
        if undo is None:
            return await self._from_backend(query, start, revision)
        needed = query.limit + len(undo) if query.limit else 0  # each undone change may replace one current entry
        return await self._page(
            query, self._rewind(query, self._current(query, start, needed), start, undo), revision, query.limit
        )

    async def _loaded(self) -> bool:
        """Wait until the cache has been filled, and return whether it has.

        Raises:
            Unavailable: the store does not answer.
        """
        try:
            return await self._freshness.loaded()
        except NotReady:
            return False

    async def _check_revision(self, revision: int) -> None:
        """Check that the store still has `revision`; one that it has not reached yet is accepted.

        The cache may have older changes than the store: the window of a resource that seldom changes drops nothing.

        Raises:
            TooOldResourceVersion: the revision has been compacted.
        """
        try:
            await self._backend.range(self._prefix, self._prefix + "\0", revision=revision, count_only=True)
        except Compacted:
            raise TooOldResourceVersion(TOO_OLD) from None
        except FutureRevision:
            return  # it may be reached in time: see Freshness

    def _rewind(self, query: ListQuery, present: Snapshot, start: str, undo: dict[str, StoredEntry | None]) -> Snapshot:
        """Return the snapshot `present` as it was at an earlier revision.

        Args:
            query: the list; changes of keys outside its prefix are ignored. Its selectors are not applied.
            present: the entries of one page of that list, at the revision of the cache.
            start: the first key of the page; changes of lesser keys are ignored.
            undo: for each key that has changed since, the former entry, or None if the key did not exist
                (`Window.undo`).
        """
        affected = {key: entry for key, entry in undo.items() if key.startswith(query.prefix) and key >= start}
        if not affected:
            return present
        added = sum(key in self._cache.entries for key in affected)
        rewound = [entry for entry in present.entries if entry.key not in affected]
        # If the snapshot was cut by the limit, keys after its last entry belong to a later page.
        last = present.entries[-1].key if len(present.entries) < present.total else None
        former = [entry for entry in affected.values() if entry is not None]
        rewound += [entry for entry in former if last is None or entry.key <= last]
        rewound.sort(key=lambda entry: entry.key)
        return Snapshot(rewound, present.total - added + len(former))

    def _current(self, query: ListQuery, start: str, most: int) -> Snapshot:
        """Return the cache's current entries of the query's prefix, from the key `start` on.

        Selectors are not applied.

        Args:
            most: the number of entries that the caller needs (0: all). More are returned if there are selectors.
        """
        if query.single:
            entry = self._cache.entries.get(query.prefix)
            matching = [entry] if entry is not None and query.prefix >= start else []
            return Snapshot(matching, len(matching))
        if most and _is_plain(query):
            return Snapshot(*self._cache.entries.first(most, query.prefix, start))
        everything = self._cache.entries.within(query.prefix, start)
        return Snapshot(everything, len(everything))

    async def _indexed(self, query: ListQuery, start: str) -> Snapshot | None:
        """Return the cache's current entries that have the required value of the indexed field.

        Return None if the query does not require one, or selects objects in another version.
        """
        required = query.predicate.index
        if required is None or query.single or query.view is not None:
            return None
        await self._cache.index.fill(required.of)
        entries = self._cache.index.within(required, query.prefix, start)
        return None if entries is None else Snapshot(entries, len(entries), required.field)

    async def _from_cache(self, query: ListQuery, start: str = "", *, limit: int) -> ListPage:
        span = current_span()
        span.event("watchCache locked acquired")
        span.event("watchCache fresh enough")
        snapshot = await self._indexed(query, start) or self._current(query, start, limit)
        span.event("GetLatestSnapshotOrBuildLocked success")
        span.event("Listed items from cache")
        page = await self._page(query, snapshot, self._freshness.revision(), limit)
        span.event("Filtered items")
        return page

    async def _page(self, query: ListQuery, snapshot: Snapshot, revision: int, limit: int) -> ListPage:
        """Return the page of the entries in `snapshot` that match the query.

        With a selector, this yields to the event loop every few hundred entries.

        Args:
            query: the list query.
            snapshot: the entries from the first key of the page on.
            revision: the resource version of the list.
            limit: the maximum number of entries; 0 for all.
        """
        chosen: list[Entry] = []
        entries = snapshot.entries
        if query.view is not None:
            chosen, examined = await apply_view(query.view, entries, limit)
            remaining = len(entries) - examined
            more = remaining > 0
        elif query.predicate.empty:
            more = 0 < limit < snapshot.total
            chosen.extend(entries[:limit] if more else entries)
            remaining = snapshot.total - len(chosen)
        else:
            chosen, examined = await filter_entries(entries, query.predicate.matcher, limit)
            more, remaining = examined < len(entries), 0
            if more and (index := query.predicate.index) is not None:
                more = bool((await filter_entries(entries[examined:], index.matches, 1))[0])
        self._lists.cached(snapshot.total, len(chosen), snapshot.field)
        return page_of(query, chosen, revision, more, remaining)

    async def _from_backend(self, query: ListQuery, start: str, revision: int) -> ListPage:
        """Return a page that is read from the store, at `revision` (0: the current one), from the key `start` on.

        Raises:
            TooOldResourceVersion: the revision has been compacted.
            TooLargeResourceVersion: the store has not reached the revision.
            Unreadable: objects cannot be read.
        """
        began, fetched, evaluated = time.monotonic(), 0, 0
        chosen: list[Entry] = []
        unreadable = UnreadableObjects()
        first: Range | None = None
        more = False
        async for page in self._backend_pages(query, start, revision):
            first = first or page
            fetched += len(page.kvs)
            with LayerTimer(DECODING):
                entries = await self._readable(page.kvs, unreadable)
            matching, examined = await apply_view(
                query.view or filter_view(query.predicate), entries, query.limit and query.limit - len(chosen)
            )
            evaluated += examined
            chosen += matching
            if len(chosen) == query.limit:
                more = examined < len(entries) or page.more
                break
        unreadable.check()
        assert first is not None
        self._lists.stored(fetched, evaluated, len(chosen), time.monotonic() - began)
        return page_of(query, chosen, revision or first.revision, more, first.total - len(chosen))

    async def _readable(self, kvs: Sequence[KeyValue], unreadable: UnreadableObjects) -> Sequence[StoredEntry]:
        """Return the entries of those keys that can be read, and add the others to `unreadable`.

        An object that the cache has in the same revision is not decoded again.

        Raises:
            Unreadable: too many objects cannot be read.
        """
        entries = []
        timer = YieldTimer()
        cached, reader = self._cache.entries, self._cache.reader
        completes = reader.completes
        for kv in kvs:
            key = kv.key[len(self._prefix) :]
            try:
                entry = cached.get(key) if completes else None
                if entry is None or entry.revision != kv.mod_revision:
                    entry = await reader.load(key, kv)
                    await timer.yield_if_due()
                entries.append(entry)
            except Unreadable as error:
                unreadable.add(error)
        return entries

    async def _backend_pages(self, query: ListQuery, start: str, revision: int) -> AsyncIterator[Range]:
        """Yield the query's keys from `start` on, in pages at one revision; at least one page, which may be empty.

        The first page has the size of the query's limit. Later ones are larger, because a selector may match little (as
        upstream).

        Raises:
            TooOldResourceVersion: the revision has been compacted.
            TooLargeResourceVersion: the store has not reached the revision.
        """
        low = self._prefix + max(query.prefix, start)
        high = self._prefix + query.prefix + "\0" if query.single else prefix_end(self._prefix + query.prefix)
        if not is_key(query.prefix):
            # An empty range: such a namespace cannot exist in the store, but the response needs the store's revision.
            low = high = self._prefix
        size, first = query.limit or BIGGEST_PAGE, True
        try:
            while True:
                page = await self._backend.range(low, high, limit=size, revision=revision, counted=first)
                revision, first = revision or page.revision, False
                yield page
                if not page.more:
                    return
                low = page.kvs[-1].key + "\0"
                size = min(size * 2, BIGGEST_PAGE)
        except Compacted:
            raise TooOldResourceVersion(TOO_OLD) from None
        except FutureRevision:
            if not self._cached or query.single:
                await self.check_reached(revision)
            raise TooLargeResourceVersion(revision, self._freshness.revision()) from None


def _has_only_a_limit(query: ListQuery) -> bool:
    """Return whether the query has a limit and neither a label nor a field selector.

    The store answers such a list while the cache cannot be filled.
    Upstream: staging/src/k8s.io/apiserver/pkg/storage/cacher/delegator.go, shouldDelegateListOnNotReadyCache
    """
    return query.limit > 0 and query.predicate.labels is None and query.predicate.fields is None


def _is_plain(query: ListQuery) -> bool:
    """Return whether the query selects every object of its prefix and needs no conversion."""
    return query.predicate.empty and query.view is None
