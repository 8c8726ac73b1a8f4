"""Outages of etcd: cached reads continue, writes fail, and everything recovers without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from integration.storage.objects import PODS, Events, create, labelled, names, pod, reached, setting
from support.etcd import Etcd, EtcdCluster, etcd_36, running_etcd
from support.waiting import eventually
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.cacher import Cacher
from tetrapod.generic.storage.etcd import EtcdBackend
from tetrapod.generic.storage.queries import ListQuery, WatchQuery


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    with running_etcd(tmp_path / "etcd") as member:
        yield member


@pytest_asyncio.fixture(loop_scope="session")
async def backend(etcd: Etcd) -> AsyncIterator[EtcdBackend]:
    opened = EtcdBackend([etcd.url], timeout=1.0)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pods(backend: EtcdBackend) -> AsyncIterator[Cacher]:
    opened = Cacher(backend, PODS)
    yield opened
    await opened.close()


async def answers(storage: Cacher) -> bool:
    try:
        await storage.get("a/x")
    except Unavailable:
        return False
    return True


async def test_cached_reads_go_on_and_watches_notice_nothing(etcd: Etcd, pods: Cacher) -> None:
    entry = await create(pods, "a/x", "a/y")
    await reached(pods, entry.revision)
    watch = await pods.watch(WatchQuery(resource_version=str(entry.revision)))
    await asyncio.to_thread(etcd.stop)
    cached = await pods.get("a/x", "0")
    assert cached is not None
    assert names((await pods.list(ListQuery(resource_version="0"))).entries) == ["a/x", "a/y"]
    assert names((await pods.list(ListQuery(resource_version=str(entry.revision), predicate=labelled()))).entries) == [
        "a/x",
        "a/y",
    ]
    for rejected in (
        create(pods, "a/z"),
        pods.guaranteed_update("a/x", setting(n="1")),
        pods.delete("a/x"),
        pods.get("a/x"),
        pods.list(ListQuery()),
    ):
        with pytest.raises(Unavailable):
            await rejected
    await asyncio.to_thread(etcd.start)
    await eventually(lambda: answers(pods))
    await create(pods, "a/z")
    assert await Events(watch).take(1) == [("ADDED", "a/z")]
    watch.close()


async def test_watches_end_when_history_was_compacted_at_the_same_time(etcd: Etcd, pods: Cacher) -> None:
    entry = await create(pods, "a/x")
    await reached(pods, entry.revision)
    watch = Events(await pods.watch(WatchQuery(resource_version=str(entry.revision))))
    await asyncio.to_thread(etcd.stop)
    await asyncio.to_thread(etcd.start)
    other = EtcdBackend([etcd.url])
    # Write and compact the write before the watch cache reconnects, which it does after a pause.
    written = await Cacher(other, PODS).create("a/y", pod("a", "y"))
    gone = await Cacher(other, PODS).create("a/z", pod("a", "z"))
    await other.compact(gone.revision)
    await eventually(lambda: answers(pods))
    await reached(pods, gone.revision)
    page = await pods.list(ListQuery())
    assert names(page.entries) == ["a/x", "a/y", "a/z"]
    ended = False
    seen: list[str] = []
    while not ended and len(seen) < 2:
        try:
            event = await watch.next()
            seen.append(event.entry.key if event.entry is not None else event.type)
        except StopAsyncIteration:
            ended = True
    if ended:  # it reconnected too late, so clients that resume from an old version get an error
        again = Events(await pods.watch(WatchQuery(resource_version=str(entry.revision))))
        event = await again.next()
        assert event.status is not None and event.status["code"] == 410
        assert written.revision > entry.revision
    else:  # it reconnected before the compaction, so it missed nothing
        assert seen == ["a/y", "a/z"]
    await other.close()


async def test_a_first_read_without_etcd_is_rejected_and_a_later_one_answered(etcd: Etcd, pods: Cacher) -> None:
    await asyncio.to_thread(etcd.stop)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await pods.get("a/x", "0")
        with pytest.raises(Unavailable):
            await pods.list(ListQuery())
    await asyncio.to_thread(etcd.start)
    await eventually(lambda: answers(pods))
    await create(pods, "a/x")
    assert await pods.get("a/x") is not None


async def test_calls_to_an_etcd_that_does_not_answer_end_at_their_deadline(
    etcd: Etcd, backend: EtcdBackend, pods: Cacher
) -> None:
    await create(pods, "a/x")
    await pods.ready()
    etcd.pause()
    try:
        for silent in (backend.get("/a"), backend.put_if("/a", b"x", 0), backend.revision()):
            async with asyncio.timeout(8):
                with pytest.raises(Unavailable):
                    await silent
        assert await pods.get("a/x", "0") is not None
    finally:
        etcd.resume()
    await eventually(lambda: answers(pods))


async def test_another_endpoint_takes_over(etcd: Etcd, backend: EtcdBackend) -> None:
    """Endpoints of one cluster, one of them stopped."""
    several = EtcdBackend(["http://127.0.0.1:1", etcd.url], timeout=1.0)
    assert (await several.put_if("/a", b"x", 0)).succeeded
    async with several.watch("/", "0", 1) as watch:
        assert (await asyncio.wait_for(anext(watch), 10)).events[0].key == "/a"
    assert await several.revision() == await backend.revision()
    await several.close()
    none = EtcdBackend(["http://127.0.0.1:1", "http://127.0.0.1:2"])
    with pytest.raises(Unavailable, match="cannot connect"):
        await none.get("/a")
    await none.close()


async def test_a_member_that_stops_answering_is_ignored_before_any_deadline(tmp_path: Path) -> None:
    cluster = EtcdCluster(etcd_36(), tmp_path / "etcd")
    cluster.start()
    silent = next(member for member in cluster.members if member is not cluster.leader())
    others = [member.url for member in cluster.members if member is not silent]
    backend = EtcdBackend([silent.url, *others], timeout=100.0)
    try:
        assert (await backend.put_if("/a", b"1", 0)).succeeded
        async with backend.watch("/", "0", 1) as watch:
            await anext(watch)
            silent.pause()
            async with asyncio.timeout(30):
                written = asyncio.create_task(backend.put_if("/b", b"1", 0))
                found = await backend.get("/a")
                assert found is not None and found.value == b"1"
                assert (await backend.put_if("/a", b"2", found.mod_revision)).succeeded
                with pytest.raises(Unavailable):
                    while True:
                        await anext(watch)
                assert not written.done(), "nobody knows what becomes of it: it is not sent again"
            silent.resume()
            async with asyncio.timeout(30):
                assert (await written).succeeded
    finally:
        silent.resume()
        await backend.close()
        cluster.stop()
