"""The contract of storage backends, in etcd's terms: revisions, comparisons, ranges at a revision, watches, leases,
compaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

from tetrapod.generic.storage.backend import (
    Backend,
    BackendEvent,
    BackendWatch,
    Compacted,
    FutureRevision,
    LeaseNotFound,
    RequestTooLarge,
)


async def put(backend: Backend, key: str, value: bytes, expected: int = 0, lease: int = 0) -> int:
    result = await backend.put_if(key, value, expected, lease=lease)
    assert result.succeeded
    return result.revision


async def take(watch: BackendWatch, count: int) -> list[BackendEvent]:
    events: list[BackendEvent] = []
    while len(events) < count:
        events += (await asyncio.wait_for(anext(watch), 10)).events
    return events


async def test_put_if_absent_creates_once(backend: Backend, root: str) -> None:
    revision = await put(backend, f"{root}/a", b"1")
    again = await backend.put_if(f"{root}/a", b"2", 0)
    assert not again.succeeded
    assert again.current is not None
    assert (again.current.value, again.current.mod_revision, again.current.create_revision) == (
        b"1",
        revision,
        revision,
    )
    assert await backend.get(f"{root}/a") == again.current


async def test_put_if_replaces_the_revision_it_names_and_no_other(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"1")
    second = await put(backend, f"{root}/a", b"2", first)
    assert second > first
    stale = await backend.put_if(f"{root}/a", b"3", first)
    assert not stale.succeeded
    assert stale.current is not None and stale.current.value == b"2"
    assert stale.current.create_revision == first


async def test_a_put_on_a_deleted_key_fails_and_says_it_is_absent(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"1")
    assert (await backend.delete_if(f"{root}/a", first)).succeeded
    result = await backend.put_if(f"{root}/a", b"2", first)
    assert not result.succeeded
    assert result.current is None


async def test_delete_if_deletes_the_revision_it_names_and_no_other(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"1")
    second = await put(backend, f"{root}/a", b"2", first)
    rejected = await backend.delete_if(f"{root}/a", first)
    assert not rejected.succeeded and rejected.current is not None
    done = await backend.delete_if(f"{root}/a", second)
    assert done.succeeded and done.revision > second
    assert await backend.get(f"{root}/a") is None
    assert not (await backend.delete_if(f"{root}/a", second)).succeeded
    assert not (await backend.delete_if(f"{root}/a", 0)).succeeded


async def test_revision_is_never_behind_an_acknowledged_write(backend: Backend, root: str) -> None:
    for number in range(5):
        assert await put(backend, f"{root}/{number}", b"x") <= await backend.revision()


async def test_writes_at_the_same_time_get_different_revisions(backend: Backend, root: str) -> None:
    revisions = await asyncio.gather(*(put(backend, f"{root}/{number}", b"x") for number in range(50)))
    assert len(set(revisions)) == 50


async def test_one_of_many_writers_of_one_key_wins(backend: Backend, root: str) -> None:
    results = await asyncio.gather(*(backend.put_if(f"{root}/a", b"%d" % number, 0) for number in range(20)))
    assert sum(result.succeeded for result in results) == 1


async def test_key_that_is_not_utf_8_does_not_exist(backend: Backend, root: str) -> None:
    assert await backend.get(f"{root}/\udcff") is None


async def test_range_is_sorted_and_bounded(backend: Backend, root: str) -> None:
    for name in ("b", "a", "c", "é", "a-b", "a/b"):
        await put(backend, f"{root}/{name}", name.encode())
    result = await backend.range(f"{root}/a", f"{root}/c")
    assert [kv.key for kv in result.kvs] == [f"{root}/{name}" for name in ("a", "a-b", "a/b", "b")]
    assert (result.more, result.total) == (False, 4)
    everything = await backend.range(f"{root}/", f"{root}0")
    assert everything.kvs[-1].value == "é".encode()


async def test_range_with_a_limit_says_how_many_there_are(backend: Backend, root: str) -> None:
    for number in range(5):
        await put(backend, f"{root}/{number}", b"x")
    result = await backend.range(f"{root}/", f"{root}0", limit=2)
    assert (len(result.kvs), result.more, result.total) == (2, True, 5)
    assert (await backend.range(f"{root}/", f"{root}0", limit=5)).more is False


async def test_range_can_count_and_leave_values_out(backend: Backend, root: str) -> None:
    await put(backend, f"{root}/a", b"x")
    counted = await backend.range(f"{root}/", f"{root}0", count_only=True)
    assert (counted.total, len(counted.kvs)) == (1, 0)
    keys = await backend.range(f"{root}/", f"{root}0", keys_only=True)
    assert [(kv.key, kv.value) for kv in keys.kvs] == [(f"{root}/a", b"")]


async def test_range_shows_a_past_revision(backend: Backend, root: str) -> None:
    a1 = await put(backend, f"{root}/a", b"a1")
    b1 = await put(backend, f"{root}/b", b"b1")
    await put(backend, f"{root}/a", b"a2", a1)
    await backend.delete_if(f"{root}/b", b1)
    c1 = await put(backend, f"{root}/c", b"c1")
    past = await backend.range(f"{root}/", f"{root}0", revision=b1)
    assert [(kv.key, kv.value, kv.mod_revision) for kv in past.kvs] == [
        (f"{root}/a", b"a1", a1),
        (f"{root}/b", b"b1", b1),
    ]
    page = await backend.range(f"{root}/", f"{root}0", revision=b1, limit=1)
    assert (len(page.kvs), page.more, page.total) == (1, True, 2)
    assert past.revision >= c1


async def test_a_revision_of_the_future_is_rejected(backend: Backend, root: str) -> None:
    with pytest.raises(FutureRevision):
        await backend.range(f"{root}/", f"{root}0", revision=await backend.revision() + 1000)


async def test_watch_delivers_creation_change_and_deletion(backend: Backend, root: str) -> None:
    async with backend.watch(f"{root}/", f"{root}0", 0) as watch:
        first = await put(backend, f"{root}/a", b"1")
        second = await put(backend, f"{root}/a", b"2", first)
        await put(backend, f"{root}x", b"outside")
        gone = (await backend.delete_if(f"{root}/a", second)).revision
        events = await take(watch, 3)
    assert [(event.value, event.revision, event.created) for event in events] == [
        (b"1", first, True),
        (b"2", second, False),
        (None, gone, False),
    ]
    assert [event.previous.value if event.previous else None for event in events] == [None, b"1", b"2"]


async def test_watch_replays_history_then_follows(backend: Backend, root: str) -> None:
    await put(backend, f"{root}/a", b"1")
    start = await put(backend, f"{root}/b", b"2")
    await put(backend, f"{root}/c", b"3")
    async with backend.watch(f"{root}/", f"{root}0", start, previous=False) as watch:
        assert [event.key for event in await take(watch, 2)] == [f"{root}/b", f"{root}/c"]
        last = await put(backend, f"{root}/d", b"4")
        assert [event.revision for event in await take(watch, 1)] == [last]


async def test_watch_may_begin_in_the_future(backend: Backend, root: str) -> None:
    now = await put(backend, f"{root}/a", b"1")
    async with backend.watch(f"{root}/", f"{root}0", now + 2) as watch:
        second = await put(backend, f"{root}/a", b"2", now)
        third = await put(backend, f"{root}/a", b"3", second)
        assert [event.revision for event in await take(watch, 1)] == [third]


async def test_many_watches_see_their_own_keys_only(backend: Backend, root: str) -> None:
    async with backend.watch(f"{root}/a/", f"{root}/a0", 0) as a, backend.watch(f"{root}/b/", f"{root}/b0", 0) as b:
        for number in range(10):
            await put(backend, f"{root}/{'ab'[number % 2]}/{number}", b"x")
        assert {event.key.split("/")[2] for event in await take(a, 5)} == {"a"}
        assert {event.key.split("/")[2] for event in await take(b, 5)} == {"b"}


async def test_a_watch_may_be_of_a_key_a_folder_all_above_it_or_any_range(backend: Backend, root: str) -> None:
    spans = {
        "key": (f"{root}/a/b", f"{root}/a/b\0"),
        "folder": (f"{root}/a/", f"{root}/a0"),
        "above": (f"{root}/", f"{root}0"),
        "range": (f"{root}/a/", f"{root}/b/m"),
        "half": (f"{root}/a/b", f"{root}/b/"),
    }
    async with contextlib.AsyncExitStack() as stack:
        watches = {name: await stack.enter_async_context(backend.watch(*span, 0)) for name, span in spans.items()}
        async with backend.watch(*spans["range"], 0), backend.watch(*spans["folder"], 0):
            pass  # the end of one watch does not end others
        keys = [f"{root}/{name}" for name in ("a/a", "a/b", "a/b/c", "b/a", "b/z", "c")]
        for key in keys:
            await put(backend, key, b"1")
        for name, (start, end) in spans.items():
            expected = [key for key in keys if start <= key < end]
            assert [event.key for event in await take(watches[name], len(expected))] == expected, name


async def test_progress_reaches_a_watch_whose_keys_are_quiet(backend: Backend, root: str) -> None:
    """Progress is reported only if it is reliable. It is not with etcd 3.4.23, which must never report it."""
    async with backend.watch(f"{root}/quiet/", f"{root}/quiet0", 0) as watch:
        before = watch.progress
        revision = await put(backend, f"{root}/loud/a", b"x")
        watch.request_progress()
        if backend.progress_reliable:
            batch = await asyncio.wait_for(anext(watch), 10)
            assert not batch.events
            assert batch.revision >= revision
            assert watch.progress >= revision
        else:
            quiet = await put(backend, f"{root}/quiet/a", b"x")
            assert [event.revision for event in await take(watch, 1)] == [quiet]
            assert before < revision


async def test_a_watch_of_the_future_keeps_no_other_from_its_progress(backend: Backend, root: str) -> None:
    """etcd ignores progress requests on a stream with a watch whose start revision the store has not reached."""
    if not backend.progress_reliable:
        pytest.skip("not applicable: no progress is reported")
    async with backend.watch(f"{root}/quiet/", f"{root}/quiet0", 0) as watch:
        revision = await put(backend, f"{root}/loud/a", b"x")
        async with backend.watch(f"{root}/later/", f"{root}/later0", revision + 1) as future:
            watch.request_progress()
            batch = await asyncio.wait_for(anext(watch), 10)
            assert not batch.events
            assert batch.revision >= revision
            written = await put(backend, f"{root}/later/a", b"x")
            assert [event.revision for event in await take(future, 1)] == [written]


async def test_progress_is_never_ahead_of_what_was_handed_out(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"x")
    for number in range(20):
        last = await put(backend, f"{root}/{number}", b"x")
    async with backend.watch(f"{root}/", f"{root}0", first) as watch:
        seen = 0
        while seen < last:
            assert watch.progress <= max(seen, first - 1) or watch.progress < last
            seen = (await asyncio.wait_for(anext(watch), 10)).revision
            assert watch.progress >= seen
    assert seen == last


async def test_ready_events_are_returned_once_and_in_order(backend: Backend, root: str) -> None:
    revisions = [await put(backend, f"{root}/{i}", b"1") for i in range(3)]
    async with backend.watch(f"{root}/", f"{root}0", revisions[0]) as watch:
        seen = [event.revision for event in await take(watch, 1)]
        written: list[int] = []
        async with asyncio.timeout(10):
            while len(seen) < 23:
                if len(written) < 20:
                    written.append(await put(backend, f"{root}/n{len(written)}", b"1"))
                if (batch := watch.next_if_ready()) is not None:
                    seen += [event.revision for event in batch.events]
                    assert watch.progress >= seen[-1]
                elif len(written) % 3 == 0 and len(seen) < len(revisions) + len(written):
                    seen += [event.revision for event in (await anext(watch)).events]
                await asyncio.sleep(0)
        assert seen == revisions + written
        assert not (left := watch.next_if_ready()) or not left.events


async def test_compaction_forgets_the_past_and_keeps_the_present(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"1")
    gone = await put(backend, f"{root}/b", b"1")
    second = await put(backend, f"{root}/a", b"2", first)
    await backend.delete_if(f"{root}/b", gone)
    third = await put(backend, f"{root}/a", b"3", second)
    await backend.compact(third)
    with pytest.raises(Compacted):
        await backend.range(f"{root}/", f"{root}0", revision=second)
    with pytest.raises(Compacted):
        await backend.compact(second)
    now = await backend.range(f"{root}/", f"{root}0", revision=third)
    assert [(kv.key, kv.value) for kv in now.kvs] == [(f"{root}/a", b"3")]
    assert (await backend.range(f"{root}/", f"{root}0")).total == 1


async def test_a_watch_from_a_compacted_revision_ends(backend: Backend, root: str) -> None:
    first = await put(backend, f"{root}/a", b"1")
    second = await put(backend, f"{root}/a", b"2", first)
    await backend.compact(second)
    async with backend.watch(f"{root}/", f"{root}0", first) as watch:
        with pytest.raises(Compacted) as caught:
            await asyncio.wait_for(anext(watch), 10)
    assert caught.value.revision == second


async def test_history_has_the_events_between_two_revisions_with_the_values_before(
    with_history: Backend, root: str
) -> None:
    backend = with_history
    first = await put(backend, f"{root}/a", b"1")
    second = await put(backend, f"{root}/a", b"2", first)
    await put(backend, f"{root}0", b"outside")
    created = await put(backend, f"{root}/b", b"1")
    deleted = await backend.delete_if(f"{root}/a", second)
    later = await put(backend, f"{root}/c", b"1")

    async def history(first: int, last: int) -> list[tuple[str, bytes | None, int, bytes | None, bool]]:
        events = [event async for batch in backend.history(f"{root}/", f"{root}0", first, last) for event in batch]
        return [(e.key[-1], e.value, e.revision, e.previous and e.previous.value, e.created) for e in events]

    assert await history(second, deleted.revision) == [
        ("a", b"2", second, b"1", False),
        ("b", b"1", created, None, True),
        ("a", None, deleted.revision, b"2", False),
    ]
    assert await history(second + 1, second + 1) == []
    await backend.compact(later)
    with pytest.raises(Compacted):
        await history(created, later)


async def test_keys_of_a_lease_vanish_as_deletions(backend: Backend, root: str) -> None:
    lease = await backend.grant_lease(1)
    async with backend.watch(f"{root}/", f"{root}0", 0) as watch:
        leased = await put(backend, f"{root}/event", b"x", lease=lease)
        kept = await put(backend, f"{root}/freed", b"x", lease=lease)
        await put(backend, f"{root}/freed", b"y", kept)  # written again without a lease: the key stays
        events = await take(watch, 4)
    assert (events[-1].key, events[-1].value) == (f"{root}/event", None)
    assert events[-1].revision > leased
    assert await backend.get(f"{root}/event") is None
    assert await backend.get(f"{root}/freed") is not None


async def test_an_unknown_lease_is_rejected(backend: Backend, root: str) -> None:
    with pytest.raises(LeaseNotFound):
        await backend.put_if(f"{root}/a", b"x", 0, lease=987654321)
    assert await backend.get(f"{root}/a") is None


async def test_too_large_a_value_is_rejected(backend: Backend, root: str) -> None:
    with pytest.raises(RequestTooLarge):
        await backend.put_if(f"{root}/a", os.urandom(1 << 20) * 2, 0)
    await put(backend, f"{root}/a", os.urandom(1 << 20))


async def test_size_is_known(backend: Backend, root: str) -> None:
    await put(backend, f"{root}/a", b"x" * 10_000)
    assert await backend.size() > 10_000
