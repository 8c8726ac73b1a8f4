"""Lists: from the cache wherever it can answer exactly, else from the backend.

Which revision a list shows follows from resourceVersion, resourceVersionMatch, limit and continue as in upstream's
k8s.io/apiserver/pkg/storage/cacher/delegator (what the cache may answer) and etcd3/store.go (ResolveGetListRev).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from tetrapod.generic.storage.backend import Backend, Compacted, FutureRevision, Range
from tetrapod.generic.storage.cacher import continue_token
from tetrapod.generic.storage.cacher.cache import Cache
from tetrapod.generic.storage.cacher.continue_token import INCONSISTENT, Continuation
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.freshness import Freshness
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, TooLargeResourceVersion, TooOldResourceVersion
from tetrapod.generic.storage.keys import prefix_end
from tetrapod.generic.storage.metrics import Lists
from tetrapod.generic.storage.resource_version import parse_resource_version

Snapshot: TypeAlias = Sequence[StoredEntry]
"""Entries of one revision, in order: it stays as it is while the cache moves on."""
YIELD_EVERY: Final = 500
BIGGEST_PAGE: Final = 10_000
TOO_OLD: Final = "The resourceVersion for the provided list is too old."
TOKEN_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)


class Lister:
    def __init__(self, backend: Backend, prefix: str, cache: Cache, freshness: Freshness, lists: Lists) -> None:
        self._backend = backend
        self._lists = lists
        self._prefix = prefix
        self._cache = cache
        self._freshness = freshness

    async def list(self, query: ListQuery) -> ListPage:
        if query.continue_token:
            continuation = continue_token.decode(query.continue_token)
            if not query.single:  # of one object there is no rest
                return await self._continued(query, continuation)
        try:
            asked = parse_resource_version(query.resource_version)
        except ValueError as error:
            raise ValueError(f"invalid resource version: {error}") from None
        if query.match == "Exact" or (not query.match and query.limit and asked):
            return await self._at(query, asked, "")
        if not query.resource_version:
            return await self._latest(query, "")
        if asked == 0:
            await self._freshness.filled()
            return await self._from_cache(query, limit=0)
        if await self._freshness.at_least(asked):
            return await self._from_cache(query, limit=query.limit)
        return await self._from_backend(query, "", 0)

    async def _continued(self, query: ListQuery, continuation: Continuation) -> ListPage:
        if query.resource_version not in {"", "0"}:
            raise ValueError("specifying resource version is not allowed when using continue")
        if query.resource_version == "0":
            query = replace(query, limit=0)  # no page has a limit there, the rest of a list neither
        start = query.prefix + continuation.start
        if continuation.revision == INCONSISTENT:
            return await self._latest(query, start)
        try:
            return await self._at(query, continuation.revision, start)
        except TooOldResourceVersion:
            fresh = continue_token.encode(Continuation(continuation.start, INCONSISTENT))
            raise TooOldResourceVersion(TOKEN_TOO_OLD, fresh) from None

    async def _latest(self, query: ListQuery, start: str) -> ListPage:
        if await self._freshness.latest():
            self._cache.tally.consistent += 1
            return await self._from_cache(query, start, limit=query.limit)
        self._cache.tally.fallbacks += self._backend.progress_reliable
        return await self._from_backend(query, start, 0)

    async def _at(self, query: ListQuery, revision: int, start: str) -> ListPage:
        """Exactly at `revision`: by undoing what has changed since, where the cache still knows that."""
        await self._freshness.filled()
        known = revision <= self._freshness.revision() or await self._freshness.at_least(revision)
        undo = self._cache.window.undo(revision) if known else None
        if undo is None:
            return await self._from_backend(query, start, revision)
        return await self._page(query, self._rewound(query, start, undo), revision, query.limit)

    def _rewound(self, query: ListQuery, start: str, undo: dict[str, StoredEntry | None]) -> Snapshot:
        present = self._present(query, start)
        concerned = {key: entry for key, entry in undo.items() if key.startswith(query.prefix) and key >= start}
        if query.single:
            concerned = {key: entry for key, entry in concerned.items() if key == query.prefix}
        if not concerned:
            return present
        rewound = [entry for entry in present if entry.key not in concerned]
        rewound += [entry for entry in concerned.values() if entry is not None]
        rewound.sort(key=lambda entry: entry.key)
        return rewound

    def _present(self, query: ListQuery, start: str) -> Snapshot:
        if query.single:
            entry = self._cache.entries.get(query.prefix)
            return [entry] if entry is not None and query.prefix >= start else []
        return self._cache.entries.within(query.prefix, start)

    async def _from_cache(self, query: ListQuery, start: str = "", *, limit: int) -> ListPage:
        return await self._page(query, self._present(query, start), self._freshness.revision(), limit)

    async def _page(self, query: ListQuery, entries: Snapshot, revision: int, limit: int) -> ListPage:
        """`entries` is a snapshot: choosing from it may take several turns of the loop."""
        chosen: list[Entry] = []
        if query.predicate.empty:
            more = 0 < limit < len(entries)
            chosen.extend(entries[:limit] if more else entries)
            remaining = len(entries) - len(chosen)
        else:
            more, remaining, matches = False, 0, query.predicate.matches
            for count, entry in enumerate(entries, 1):
                if matches(entry):
                    chosen.append(entry)
                    if len(chosen) == limit:
                        more = count < len(entries)
                        break
                if not count % YIELD_EVERY:
                    await asyncio.sleep(0)
        self._lists.cached(len(entries), len(chosen))
        return _finished(query, chosen, revision, more, remaining)

    async def _from_backend(self, query: ListQuery, start: str, revision: int) -> ListPage:
        began, fetched, evaluated = time.monotonic(), 0, 0
        chosen: list[Entry] = []
        first: Range | None = None
        more = False
        async for page in self._backend_pages(query, start, revision):
            first = first or page
            fetched += len(page.kvs)
            for count, kv in enumerate(page.kvs, 1):
                entry = StoredEntry.stored(kv.key[len(self._prefix) :], kv.value, kv.mod_revision, kv.lease)
                evaluated += 1
                if query.predicate.matches(entry):
                    chosen.append(entry)
                    if len(chosen) == query.limit:
                        more = count < len(page.kvs) or page.more
                        break
            if len(chosen) == query.limit:
                break
        assert first is not None
        self._lists.stored(fetched, evaluated, len(chosen), time.monotonic() - began)
        return _finished(query, chosen, revision or first.revision, more, first.total - len(chosen))

    async def _backend_pages(self, query: ListQuery, start: str, revision: int) -> AsyncIterator[Range]:
        """Pages at one revision, growing, since a selector may find little in the first ones (as upstream does)."""
        low = self._prefix + max(query.prefix, start)
        high = self._prefix + query.prefix + "\0" if query.single else prefix_end(self._prefix + query.prefix)
        size = query.limit or BIGGEST_PAGE
        try:
            while True:
                page = await self._backend.range(low, high, limit=size, revision=revision)
                revision = revision or page.revision
                yield page
                if not page.more:
                    return
                low = page.kvs[-1].key + "\0"
                size = min(size * 2, BIGGEST_PAGE)
        except Compacted:
            raise TooOldResourceVersion(TOO_OLD) from None
        except FutureRevision:
            raise TooLargeResourceVersion(revision, self._freshness.revision()) from None


def _finished(query: ListQuery, chosen: list[Entry], revision: int, more: bool, remaining: int) -> ListPage:
    if not more:
        return ListPage(chosen, str(revision), "", None)
    token = continue_token.encode(Continuation(chosen[-1].key[len(query.prefix) :] + "\0", revision))
    return ListPage(chosen, str(revision), token, remaining if query.predicate.empty else None)
