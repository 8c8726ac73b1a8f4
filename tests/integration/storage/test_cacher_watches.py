"""Watches: their start, their events, their end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from integration.storage.objects import PODS, Events, create, image, in_zone, labelled, pod, reached, setting, watching
from tetrapod.generic.storage.backend import Backend, BackendWatch, WatchBatch
from tetrapod.generic.storage.cacher import Cacher
from tetrapod.generic.storage.cacher import watching as watching_module
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.queries import ListQuery, WatchQuery
from tetrapod.generic.storage.transforming import ConvertedBackend
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.generic.storage.wrappers import ForwardingBackend


class Bursts(ForwardingBackend):
    """A backend whose watches wait for `burst` events, and return each in a batch of its own, as etcd does."""

    def __init__(self, inner: Backend, burst: int) -> None:
        super().__init__(inner)
        self.burst = burst
        self.get, self.range, self.put_if, self.delete_if = inner.get, inner.range, inner.put_if, inner.delete_if

    @asynccontextmanager
    async def watch(self, *span: Any, **how: Any) -> AsyncIterator[BackendWatch]:
        async with self._inner.watch(*span, **how) as watch:
            yield _BurstWatch(watch, self.burst)

    async def close(self) -> None:
        """The fixture closes the inner backend."""


class _BurstWatch:
    def __init__(self, inner: BackendWatch, burst: int) -> None:
        self._inner, self._burst = inner, burst
        self._queue: deque[WatchBatch] = deque()
        self.request_progress = inner.request_progress

    def __aiter__(self) -> _BurstWatch:
        return self

    async def __anext__(self) -> WatchBatch:
        while len(self._queue) < self._burst:
            batch = await self._inner.__anext__()
            self._queue.extend(WatchBatch([event], event.revision) for event in batch.events)
        return self._queue.popleft()

    def next_if_ready(self) -> WatchBatch | None:
        return self._queue.popleft() if self._queue else None

    @property
    def progress(self) -> int:
        return self._queue[0].revision - 1 if self._queue else self._inner.progress


async def latest(pods: Cacher) -> str:
    """Return a revision that the cache has reached, with all earlier writes."""
    page = await pods.list(ListQuery())
    newest = max([pods.revision, *(entry.revision for entry in page.entries)])
    await reached(pods, newest)
    return str(pods.revision)


async def test_a_watch_without_version_begins_with_what_is_there(pods: Cacher) -> None:
    await create(pods, "a/x", "a/y")
    await latest(pods)
    async with watching(pods) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("ADDED", "a/y")]
        await create(pods, "a/z")
        assert await events.take(1) == [("ADDED", "a/z")]


async def test_a_watch_from_a_version_shows_what_came_after(pods: Cacher) -> None:
    await pods.ready()
    first = await create(pods, "a/x")
    await create(pods, "a/y")
    await pods.guaranteed_update("a/x", setting(n="1"))
    await latest(pods)
    async with watching(pods, resource_version=str(first.revision)) as events:
        assert await events.take(2) == [("ADDED", "a/y"), ("MODIFIED", "a/x")]
        gone = await pods.delete("a/y")
        event = await events.next()
        assert (event.type, event.revision) == ("DELETED", gone.revision)
        assert event.entry is not None
        assert event.entry.raw == gone.raw
        assert event.entry.object()["metadata"]["resourceVersion"] == str(gone.revision)


async def test_a_watch_sees_its_namespace_or_its_object_only(pods: Cacher) -> None:
    await create(pods, "a/x", "b/x")
    await latest(pods)
    async with (
        watching(pods, prefix="a/", resource_version="0") as namespace,
        watching(pods, prefix="b/x", single=True, resource_version="0") as single,
    ):
        assert await namespace.take(1) == [("ADDED", "a/x")]
        assert await single.take(1) == [("ADDED", "b/x")]
        await create(pods, "b/y", "a/y")
        await pods.guaranteed_update("b/x", setting(n="1"))
        assert await namespace.take(1) == [("ADDED", "a/y")]
        assert await single.take(1) == [("MODIFIED", "b/x")]


@pytest.mark.parametrize("missed", [False, True])
async def test_an_object_enters_and_leaves_a_selector(pods: Cacher, missed: bool) -> None:
    await pods.ready()
    start = await create(pods, "a/x", tier="back")
    query = {"predicate": labelled(tier="front"), "resource_version": str(start.revision)}

    async def move() -> tuple[int, int]:
        await pods.guaranteed_update("a/x", setting(tier="front"))
        matching = await pods.guaranteed_update("a/x", setting(more="1"))
        left = await pods.guaranteed_update("a/x", setting(tier="back"))
        await pods.guaranteed_update("a/x", setting(more="2"))
        return matching.revision, left.revision

    if missed:
        matching, left = await move()
        await latest(pods)
    async with watching(pods, **query) as events:
        if not missed:
            matching, left = await move()
        assert await events.take(2) == [("ADDED", "a/x"), ("MODIFIED", "a/x")]
        event = await events.next()
        assert (event.type, event.revision) == ("DELETED", left)
        assert event.entry is not None
        assert event.entry.labels == {"tier": "front", "more": "1"}
        assert event.entry.revision == left > matching


async def test_a_change_concerns_only_the_watches_of_its_indexed_values(pods: Cacher) -> None:
    await create(pods, "a/x", zone="1")
    await create(pods, "b/y", zone="2")
    await latest(pods)
    first: list[str] = []
    second: list[str] = []
    third: list[str] = []
    async with (
        watching(pods, predicate=in_zone("1", first)) as one,
        watching(pods, predicate=in_zone("2", second), prefix="a/") as two,
        watching(pods, predicate=in_zone("3", third)) as three,
        watching(pods) as everything,
    ):
        assert await one.take(1) == [("ADDED", "a/x")]
        assert await everything.take(2) == [("ADDED", "a/x"), ("ADDED", "b/y")]
        await pods.guaranteed_update("a/x", setting(zone="2"))
        await pods.guaranteed_update("a/x", setting(other="value"))
        await pods.guaranteed_update("b/y", setting(zone="1"))
        await create(pods, "a/z", zone="3")
        assert await everything.take(4) == [
            ("MODIFIED", "a/x"),
            ("MODIFIED", "a/x"),
            ("MODIFIED", "b/y"),
            ("ADDED", "a/z"),
        ]
        assert await one.take(2) == [("DELETED", "a/x"), ("ADDED", "b/y")]
        assert await two.take(2) == [("ADDED", "a/x"), ("MODIFIED", "a/x")]
        assert await three.take(1) == [("ADDED", "a/z")]
        assert "a/z" not in first + second
        third.clear()
        await pods.delete("a/x")
        assert await two.take(1) == [("DELETED", "a/x")]
        assert await everything.take(1) == [("DELETED", "a/x")]
        assert third == []


async def test_a_watch_begins_with_the_objects_of_its_indexed_value(pods: Cacher) -> None:
    await create(pods, "a/x", "b/x", zone="1")
    await create(pods, "a/y", zone="2")
    await latest(pods)
    tested: list[str] = []
    async with watching(pods, predicate=in_zone("1", tested)) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("ADDED", "b/x")]
        assert tested == ["a/x", "b/x"]
        await pods.guaranteed_update("a/x", setting(zone="2"))
        assert await events.take(1) == [("DELETED", "a/x")]
    tested.clear()
    async with watching(
        pods, predicate=in_zone("2", tested), prefix="a/", initial_events=True, bookmarks=True
    ) as events:
        assert await events.take(3) == [("ADDED", "a/x"), ("ADDED", "a/y"), ("BOOKMARK", "")]
        assert tested == ["a/x", "a/y"]


async def test_field_selectors_watch_too(pods: Cacher) -> None:
    await pods.ready()
    async with watching(pods, predicate=image("i"), resource_version="0") as events:
        other = pod("a", "w")
        other["spec"]["containers"][0]["image"] = "other"
        await pods.create("a/w", other)
        await create(pods, "a/x")
        assert await events.take(1) == [("ADDED", "a/x")]


async def test_a_version_before_the_window_is_gone(backend: Backend, root: str) -> None:
    pods = Cacher(backend, PODS, root=root, window=2)
    await pods.ready()
    first = await create(pods, "a/1")
    last = await create(pods, "a/2", "a/3", "a/4")
    await reached(pods, last.revision)
    async with watching(pods, resource_version=str(first.revision - 1)) as events:
        event = await events.next()
        assert event.type == "ERROR" and event.status is not None
        assert (event.status["code"], event.status["reason"]) == (410, "Expired")
        assert event.status["message"] == f"too old resource version: {first.revision - 1} ({pods._cache.window.start})"
        assert await events.ends()
    await pods.close()


async def test_a_watch_from_version_1_is_too_old_once_anything_was_written(pods: Cacher) -> None:
    await create(pods, "a/1")
    async with watching(pods, resource_version="1") as events:
        assert (await events.next()).type == "ERROR"


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
async def test_a_watch_resumes_at_a_version_from_before_the_cache_was_filled(
    with_history: Backend, root: str, compressed: bool
) -> None:
    config = StorageConfig("pods", "v1", "Pod", compressed=compressed)
    writer, later = Cacher(with_history, config, root=root), Cacher(with_history, config, root=root)
    first = await create(writer, "a/1")
    await create(writer, "a/2", "b/1")
    changed = await writer.guaranteed_update("a/1", setting(note="n" * 4096))
    gone = await writer.delete("a/2")
    async with watching(later, prefix="a/", resource_version=str(first.revision)) as events:
        added, modified, deleted = [await events.next() for _ in range(3)]
        assert [(event.type, event.entry and event.entry.key) for event in (added, modified, deleted)] == [
            ("ADDED", "a/2"),
            ("MODIFIED", "a/1"),
            ("DELETED", "a/2"),
        ]
        assert modified.entry is not None and modified.entry.raw == changed.raw
        assert deleted.entry is not None and deleted.entry.raw == gone.raw
        await create(writer, "b/2", "a/3")
        assert await events.take(1) == [("ADDED", "a/3")]
    async with watching(later, resource_version=str(gone.revision - 1)) as events:
        assert await events.take(3) == [("DELETED", "a/2"), ("ADDED", "b/2"), ("ADDED", "a/3")]
    await later.close()
    await writer.close()


async def test_a_resumed_watch_sees_objects_enter_and_leave_its_selector_in_the_past(
    with_history: Backend, root: str
) -> None:
    writer, later = Cacher(with_history, PODS, root=root), Cacher(with_history, PODS, root=root)
    first = await create(writer, "a/x", tier="back")
    await writer.guaranteed_update("a/x", setting(tier="front"))
    await writer.guaranteed_update("a/x", setting(tier="back"))
    async with watching(later, predicate=labelled(tier="front"), resource_version=str(first.revision)) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("DELETED", "a/x")]
    await later.close()
    await writer.close()


async def test_a_watch_resumes_where_nothing_of_its_kind_has_changed(with_history: Backend, root: str) -> None:
    writer, later = (
        Cacher(with_history, PODS, root=root),
        Cacher(with_history, StorageConfig("services/specs", "v1", "Service"), root=root),
    )
    first = await create(writer, "a/1")
    await create(writer, "a/2")
    async with watching(later, resource_version=str(first.revision)) as events:
        entry = await later.create(
            "a/1", {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "1", "namespace": "a"}}
        )
        event = await events.next()
        assert (event.type, event.revision) == ("ADDED", entry.revision)
    await later.close()
    await writer.close()


async def test_watches_that_resume_together_read_the_history_of_the_store_once(
    with_history: Backend, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, later = Cacher(with_history, PODS, root=root), Cacher(with_history, PODS, root=root)
    revisions = [(await create(writer, f"a/{number}")).revision for number in range(20)]
    await later.ready()
    read: list[int] = []
    history = type(with_history).history

    def counted(self: Backend, start: str, end: str, first: int, last: int) -> object:
        read.append(first)
        return history(self, start, end, first, last)

    monkeypatch.setattr(type(with_history), "history", counted)
    watches = await asyncio.gather(
        *(later.watch(WatchQuery(resource_version=str(revision))) for revision in reversed(revisions))
    )
    for number, resumed in enumerate(reversed(watches)):
        if number < 19:
            assert await Events(resumed).take(1) == [("ADDED", f"a/{number + 1}")]
        resumed.close()
    assert len(read) <= 2
    await later.close()
    await writer.close()


async def test_a_watch_resumes_at_a_version_that_the_window_has_dropped(with_history: Backend, root: str) -> None:
    pods = Cacher(with_history, PODS, root=root, window=4)
    await pods.ready()
    entries = [await create(pods, f"a/{number}") for number in range(8)]
    await reached(pods, entries[-1].revision)
    other = Cacher(with_history, PODS, root=root, window=8)
    async with watching(other, resource_version=str(entries[0].revision)) as events:
        assert await events.take(7) == [("ADDED", f"a/{number}") for number in range(1, 8)]
    async with watching(pods, resource_version=str(entries[0].revision)) as events:
        assert (await events.next()).type == "ERROR"  # more changes than the cache's history holds
    await pods.close()
    await other.close()


async def test_a_watch_at_a_compacted_version_is_too_old(with_history: Backend, root: str) -> None:
    writer, later = Cacher(with_history, PODS, root=root), Cacher(with_history, PODS, root=root)
    first = await create(writer, "a/1")
    await writer.guaranteed_update("a/1", setting(n="1"))
    kept = await writer.guaranteed_update("a/1", setting(n="2"))
    await with_history.compact(kept.revision)
    last = await create(writer, "a/2")
    async with watching(later, resource_version=str(first.revision)) as events:
        event = await events.next()
        assert event.status is not None and (event.status["code"], event.status["reason"]) == (410, "Expired")
        assert await events.ends()
    async with watching(later, resource_version=str(kept.revision)) as events:
        event = await events.next()
        assert (event.type, event.revision) == ("ADDED", last.revision)
    await later.close()
    await writer.close()


async def test_a_watch_that_missed_more_than_a_queue_holds_gets_every_event(
    pods: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching_module, "QUEUE", 10)
    await pods.ready()
    first = await create(pods, "a/0")
    last = await create(pods, *(f"a/{number}" for number in range(1, 30)))
    await reached(pods, last.revision)
    async with watching(pods, resource_version=str(first.revision)) as events:
        assert await events.take(29) == [("ADDED", f"a/{number}") for number in range(1, 30)]


async def test_a_watch_from_the_future_shows_only_what_is_later(pods: Cacher) -> None:
    await create(pods, "a/1")
    now = await latest(pods)
    async with watching(pods, resource_version=str(int(now) + 2)) as events:
        await create(pods, "a/2", "a/3", "a/4")
        event = await events.next()
        assert event.revision > int(now) + 2


@pytest.mark.parametrize("version", ["", "0", "exact"])
async def test_initial_events_end_with_a_bookmark(pods: Cacher, version: str) -> None:
    await create(pods, "a/x", x="y")
    last = await create(pods, "a/y")
    now = await latest(pods)
    query = {
        "initial_events": True,
        "match": "NotOlderThan",
        "bookmarks": True,
        "resource_version": now if version == "exact" else version,
    }
    async with watching(pods, **query) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("ADDED", "a/y")]
        end = await events.next()
        assert (end.type, end.initial_end) == ("BOOKMARK", True)
        assert end.revision >= last.revision
        await create(pods, "a/z")
        assert await events.take(1) == [("ADDED", "a/z")]
    async with watching(pods, predicate=labelled(x="y"), **query) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("BOOKMARK", "")]


async def test_initial_events_without_bookmarks_just_end(pods: Cacher) -> None:
    await create(pods, "a/x")
    await latest(pods)
    async with watching(pods, initial_events=True, match="NotOlderThan") as events:
        assert await events.take(1) == [("ADDED", "a/x")]
        await create(pods, "a/y")
        assert await events.take(1) == [("ADDED", "a/y")]


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_may_do_without_initial_events(pods: Cacher, version: str) -> None:
    await create(pods, "a/x")
    await latest(pods)
    async with watching(pods, initial_events=False, match="NotOlderThan", resource_version=version) as events:
        await create(pods, "a/y")
        assert await events.take(1) == [("ADDED", "a/y")]


async def test_initial_events_of_the_future_end_with_an_error_event(
    pods: Cacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.freshness.TIMEOUT", 0.2)
    await create(pods, "a/x")
    watch = await pods.watch(WatchQuery(initial_events=True, match="NotOlderThan", resource_version="999999999"))
    (event,) = [event async for batch in watch for event in batch]
    assert event.status is not None
    assert (event.type, event.status["code"], event.status["reason"]) == ("ERROR", 504, "Timeout")


async def test_bookmarks_are_sent_periodically_on_request(backend: Backend, root: str) -> None:
    pods = Cacher(backend, PODS, root=root, bookmark_seconds=0.05)
    first = await create(pods, "a/x")
    await reached(pods, first.revision)
    wanting = await pods.watch(WatchQuery(bookmarks=True, resource_version=str(first.revision)))
    plain = await pods.watch(WatchQuery(resource_version=str(first.revision)))
    seen: list[WatchEvent] = []
    plain.subscribe(seen.extend)
    async for batch in wanting:
        assert [event.type for event in batch] == ["BOOKMARK"]
        assert batch[0].revision >= first.revision
        break
    wanting.send_bookmark()
    async for batch in wanting:
        assert [event.type for event in batch][-1] == "BOOKMARK"
        break
    assert seen == []
    await pods.close()


async def test_others_run_while_many_watches_get_bookmarks(
    backend: Backend, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.watching.BOOKMARKS_STEP", 0.0)
    pods = Cacher(backend, PODS, root=root, bookmark_seconds=0.05)
    first = await create(pods, "a/x")
    await reached(pods, first.revision)
    query = WatchQuery(bookmarks=True, resource_version=str(first.revision))
    watches = [await pods.watch(query) for _ in range(3)]
    got: list[int] = []
    other_ran_after: list[int] = []
    last_got_it = asyncio.Event()

    def bookmarked(number: int, _: Sequence[WatchEvent]) -> None:
        got.append(number)
        if number == 0:
            watches[1].close()
            asyncio.get_running_loop().call_soon(lambda: other_ran_after.extend(got))
        if number == 2:
            last_got_it.set()

    for number, watch in enumerate(watches):
        watch.subscribe(partial(bookmarked, number))
    async with asyncio.timeout(20):
        await last_got_it.wait()
    assert got[:2] == [0, 2]
    assert other_ran_after[:1] == [0]
    await pods.close()


async def test_a_sink_gets_initial_events_queued_ones_and_then_each_as_it_happens(pods: Cacher) -> None:
    await create(pods, "a/1", "a/2")
    await latest(pods)
    watch = await pods.watch(WatchQuery(resource_version="0"))
    seen: list[str] = []
    async for chunk in watch.initial():
        seen += [event.entry.key for event in chunk if event.entry is not None]
    await create(pods, "a/3")
    arrived = asyncio.Event()

    def sink(events: object) -> None:
        for event in events:  # type: ignore[attr-defined]
            seen.append(event.entry.key)
            if event.entry.key == "a/4":
                arrived.set()

    watch.subscribe(sink)
    await create(pods, "a/4")
    await asyncio.wait_for(arrived.wait(), 10)
    assert seen == ["a/1", "a/2", "a/3", "a/4"]
    watch.close()
    await asyncio.wait_for(watch.ended(), 10)


@pytest.mark.parametrize("transformed", [False, True])
async def test_events_that_arrive_together_are_passed_to_a_sink_together(
    backend: Backend, root: str, transformed: bool
) -> None:
    bursts = Bursts(backend, 3)
    pods = Cacher(ConvertedBackend(bursts, lambda value: value) if transformed else bursts, PODS, root=root)
    await pods.ready()
    watch = await pods.watch(WatchQuery(resource_version="0"))
    batches: list[list[str]] = []
    arrived = asyncio.Event()

    def sink(events: Sequence[WatchEvent]) -> None:
        batches.append([event.entry.key for event in events if event.entry is not None])
        arrived.set()

    watch.subscribe(sink)
    last = await create(pods, "a/1", "a/2", "a/3")
    await asyncio.wait_for(arrived.wait(), 10)
    assert batches == [["a/1", "a/2", "a/3"]]
    assert pods.revision >= last.revision
    await pods.close()


async def test_watches_share_one_entry_so_that_frames_are_made_once(pods: Cacher) -> None:
    await pods.ready()
    async with watching(pods, resource_version="0") as one, watching(pods, prefix="a/", resource_version="0") as two:
        await create(pods, "a/x")
        first, second = await one.next(), await two.next()
        assert first is second
        assert first.entry is not None and second.entry is not None
        first.entry.representations["frame"] = b"made"
        assert second.entry.representations["frame"] == b"made"


async def test_a_slow_watch_is_ended_and_others_go_on(pods: Cacher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.watching.QUEUE", 5)
    await pods.ready()
    async with (
        watching(pods, resource_version="0") as slow,
        watching(pods, prefix="a/6", single=True, resource_version="0") as other,
    ):
        await create(pods, *(f"a/{number}" for number in range(10)))
        assert await other.take(1) == [("ADDED", "a/6")]
        assert await slow.ends()


async def test_a_sink_that_fails_ends_its_watch_only(pods: Cacher) -> None:
    await pods.ready()
    watch = await pods.watch(WatchQuery(resource_version="0"))

    def broken(events: object) -> None:
        raise RuntimeError("broken")

    watch.subscribe(broken)
    async with watching(pods, resource_version="0") as other:
        await create(pods, "a/x")
        assert await other.take(1) == [("ADDED", "a/x")]
    await asyncio.wait_for(watch.ended(), 10)


async def test_closing_the_storage_ends_its_watches(backend: Backend, root: str) -> None:
    pods = Cacher(backend, PODS, root=root)
    async with watching(pods, resource_version="0") as events:
        await pods.close()
        assert await events.ends()


async def test_expiry_is_a_deletion(pods: Cacher) -> None:
    await pods.ready()
    async with watching(pods, resource_version="0") as events:
        await pods.create("a/event", pod("a", "event"), ttl=1)
        assert await events.take(2) == [("ADDED", "a/event"), ("DELETED", "a/event")]
    assert await pods.get("a/event") is None
