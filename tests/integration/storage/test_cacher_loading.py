"""A cache that is being loaded: the responses during that time, and the cost of loading for other requests."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any

import pytest

from integration.storage.objects import PODS, create, labelled, names, pod, setting
from tetrapod.generic.storage.backend import Backend, Range
from tetrapod.generic.storage.cacher import Cacher
from tetrapod.generic.storage.encoding import encode
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import TooLargeResourceVersion
from tetrapod.generic.storage.queries import ListQuery, WatchQuery
from tetrapod.generic.storage.sqlite import SqliteBackend, reading
from tetrapod.generic.storage.sqlite.schema import open_connection, prepare
from tetrapod.generic.storage.wrappers import ForwardingBackend


class SlowPages(ForwardingBackend):
    """A backend that answers the first page of the cache's list only after `go` is set. Other calls are not delayed."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.go = asyncio.Event()
        self._held = False
        self.get, self.put_if, self.delete_if, self.watch = inner.get, inner.put_if, inner.delete_if, inner.watch

    async def range(self, start: str, end: str, **how: Any) -> Range:
        if not self._held:
            self._held = True
            await self.go.wait()
        return await self._inner.range(start, end, **how)

    async def close(self) -> None:
        """The fixture closes the inner backend."""


async def begun(storage: Cacher) -> None:
    """Start to load the cache, and return while it waits for the store."""
    assert await storage.get("begin/loading") is None
    await asyncio.sleep(0)


async def test_get_is_answered_by_the_store_while_the_cache_is_loading(backend: Backend, root: str) -> None:
    slow = SlowPages(backend)
    storage = Cacher(slow, PODS, root=root)
    await begun(storage)
    created = await create(storage, "a/x")
    for version in ("", "0"):
        found = await storage.get("a/x", version)
        assert found is not None and (found.raw, found.revision) == (created.raw, created.revision)
    changed = await storage.guaranteed_update("a/x", setting(n="1"))
    found = await storage.get("a/x")
    assert found is not None and found.revision == changed.revision
    assert await storage.get("a/absent") is None
    assert storage.statistics() is None, "nothing of this waited for the cache"
    slow.go.set()
    await storage.ready()
    assert storage.statistics() is not None
    await storage.close()


async def test_limited_list_is_answered_by_the_store_while_the_cache_is_loading(
    backend: Backend, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.freshness.TIMEOUT", 0.05)
    slow = SlowPages(backend)
    storage = Cacher(slow, PODS, root=root)
    await begun(storage)
    for number in range(5):
        await create(storage, f"a/{number}")
    first = await storage.list(ListQuery(limit=2))
    await create(storage, "a/00")  # the list is not affected by writes during the read
    await storage.delete("a/3")
    second = await storage.list(ListQuery(limit=2, continue_token=first.continue_token))
    assert (names(first.entries), first.remaining) == (["a/0", "a/1"], 3)
    assert (names(second.entries), second.remaining) == (["a/2", "a/3"], 1)
    assert storage.statistics() is None
    slow.go.set()
    await storage.ready()
    third = await storage.list(ListQuery(limit=2, continue_token=second.continue_token))
    assert (names(third.entries), third.continue_token, third.resource_version) == (["a/4"], "", first.resource_version)
    await storage.close()


async def test_list_that_needs_the_cache_waits_for_it_and_is_consistent(backend: Backend, root: str) -> None:
    slow = SlowPages(backend)
    storage = Cacher(slow, PODS, root=root)
    await begun(storage)
    await create(storage, "a/x", app="web")
    lists = [
        asyncio.create_task(storage.list(query))
        for query in (ListQuery(), ListQuery(resource_version="0"), ListQuery(limit=1, predicate=labelled(app="web")))
    ]
    opening = asyncio.create_task(storage.watch(WatchQuery(initial_events=True, bookmarks=True)))
    last = await create(storage, "a/y", app="web")
    slow.go.set()
    everything, any_state, selected = await asyncio.gather(*lists)
    assert names(everything.entries) == names(any_state.entries) == ["a/x", "a/y"]
    assert int(everything.resource_version) >= last.revision
    assert names(selected.entries) == ["a/x"]
    watch = await opening
    initial = [event async for batch in watch.initial() for event in batch]
    assert [event.entry.key for event in initial if event.entry is not None] == ["a/x", "a/y"]
    assert initial[-1].initial_end and initial[-1].revision >= last.revision
    watch.close()
    await storage.close()


async def test_version_of_the_future_is_too_large_while_the_cache_is_loading(
    backend: Backend, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.freshness.TIMEOUT", 0.05)
    slow = SlowPages(backend)
    storage = Cacher(slow, PODS, root=root)
    await begun(storage)
    beyond = str(await backend.revision() + 100_000)
    with pytest.raises(TooLargeResourceVersion):
        await storage.list(ListQuery(resource_version=beyond, match="Exact"))
    slow.go.set()
    with pytest.raises(TooLargeResourceVersion):
        await storage.get("a/x", beyond)
    await storage.close()


async def test_pages_of_a_past_revision_are_exact_despite_later_changes(pods: Cacher) -> None:
    """Each page is the current state with the later changes undone, at page boundaries too."""
    for number in range(0, 20, 2):
        await create(pods, f"a/{number:02}")
    expected = await pods.list(ListQuery())
    version = expected.resource_version
    for number in (1, 3, 5, 19):
        await create(pods, f"a/{number:02}")
    for number in (0, 6, 8, 10, 18):
        await pods.delete(f"a/{number:02}")
    await pods.guaranteed_update("a/12", setting(n="1"))
    await create(pods, "a/08")  # another object of that name
    for limit in range(1, 12):
        found: list[Entry] = []
        token = ""
        while True:
            query = (
                ListQuery(limit=limit, continue_token=token)
                if token
                else ListQuery(limit=limit, resource_version=version, match="Exact")
            )
            page = await pods.list(query)
            found += page.entries
            token = page.continue_token
            assert page.remaining == (len(expected.entries) - len(found) if token else None)
            if not token:
                break
        assert [(entry.key, entry.revision) for entry in found] == [
            (entry.key, entry.revision) for entry in expected.entries
        ]


@pytest.mark.parametrize("page", [50, 500])
async def test_loading_a_large_cache_leaves_the_loop_to_others(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of the event loop takes more than a few milliseconds of CPU time, independent of the number of objects,
    and of whether a page takes longer than a step may.
    """
    monkeypatch.setattr("tetrapod.generic.storage.cacher.reflector.PAGE", page)
    backend = SqliteBackend()
    count = 20_000
    for start in range(0, count, 1000):
        await asyncio.gather(
            *(
                backend.put_if(f"/registry/pods/a/{n:06}", encode(pod("a", f"{n:06}"), "v1", "Pod"), 0)
                for n in range(start, start + 1000)
            )
        )
    storage = Cacher(backend, PODS)
    loading = asyncio.create_task(storage.ready())
    steps: list[float] = []
    while not loading.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        steps.append(time.thread_time() - began)
    assert storage.statistics() is not None and len((await storage.list(ListQuery())).entries) == count
    assert len(steps) > 20
    assert max(steps) < 0.03, f"{max(steps):.3f} s of {sum(steps):.3f} s in one step"
    await storage.close()
    await backend.close()


@pytest.mark.parametrize("changed", [False, True], ids=["now", "past revision"])
async def test_page_of_the_embedded_store_costs_what_it_contains(changed: bool) -> None:
    """Counted in instructions of SQLite's virtual machine: reading everything in pages takes linear time."""
    cost: dict[int, int] = {}
    for count in (2_000, 8_000):
        connection = open_connection(":memory:")
        prepare(connection, None)
        for number in range(count):
            key, revision = f"/registry/pods/a/{number:06}", number + 3
            connection.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, 0, 0)", (revision, key, b"{}", revision))
            connection.execute("INSERT INTO current VALUES (?, ?, ?, 0)", (key, revision, revision))
        revision = count + 2
        if changed:
            connection.execute(
                "INSERT INTO revisions VALUES (?, '/registry/pods/b', x'', ?, 0, 0)", (revision + 1, revision + 1)
            )
        span = "/registry/pods/", "/registry/pods0"
        query = reading.RangeQuery(
            *span, limit=100, revision=revision, keys_only=False, count_only=False, counted=False
        )
        cost[count] = _instructions(connection, query)
        connection.close()
    assert cost[8_000] < cost[2_000] * 1.5


def _instructions(connection: sqlite3.Connection, query: reading.RangeQuery) -> int:
    """Return how many hundreds of instructions a read takes."""
    count = 0

    def counting() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(counting, 100)
    page = reading.read_range(connection, query)
    assert (len(page.kvs), page.more) == (100, True)
    return count
