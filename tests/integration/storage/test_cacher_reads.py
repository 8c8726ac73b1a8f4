"""Reads of one object and lists: their content, their revision, and their pages."""

from __future__ import annotations

import asyncio
import contextlib
import operator
from functools import partial

import orjson
import pytest

from integration.storage.objects import PODS, create, image, in_zone, labelled, names, pod, reached, setting, watching
from support.waiting import eventually
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher import Cacher, CachingStorageFactory, freshness, reflector
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import EVERYTHING
from tetrapod.generic.storage.errors import TooLargeResourceVersion, TooOldResourceVersion
from tetrapod.generic.storage.etcd import EtcdBackend
from tetrapod.generic.storage.etcd.watching import EtcdWatch
from tetrapod.generic.storage.queries import ListPage, ListQuery


async def test_an_object_comes_back_as_finished_bytes_with_its_revision(pods: Cacher) -> None:
    obj = pod("a", "x")
    created = await pods.create("a/x", {**obj, "metadata": {**obj["metadata"], "resourceVersion": "77"}})
    entry = await pods.get("a/x")
    assert entry is not None
    assert entry.raw == created.raw
    assert orjson.loads(entry.raw) == {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(created.revision)}}
    assert (entry.namespace, entry.name, entry.revision) == ("a", "x", created.revision)


async def test_the_object_of_an_entry_is_a_copy(pods: Cacher) -> None:
    await create(pods, "a/x")
    entry = await pods.get("a/x")
    assert entry is not None
    entry.object()["metadata"]["name"] = "changed"
    assert entry.peek()["metadata"]["name"] == "x"


async def test_a_read_sees_every_write_acknowledged_before_it(pods: Cacher) -> None:
    entry = await create(pods, "a/x")
    for number in range(20):
        entry = await pods.guaranteed_update("a/x", setting(n=str(number)))
        read = await pods.get("a/x")
        assert read is not None and read.revision == entry.revision
        page = await pods.list(ListQuery())
        assert page.entries[0].revision == entry.revision
        assert int(page.resource_version) >= entry.revision
    await pods.delete("a/x")
    assert await pods.get("a/x") is None


async def test_a_read_asks_for_progress_although_an_earlier_read_just_did(
    factory: CachingStorageFactory, pods: Cacher, with_history: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(with_history, EtcdBackend):
        pytest.skip("not applicable: only etcd has progress notifications")
    requests = 0
    request = EtcdWatch.request_progress

    async def number_of_requests() -> int:
        return requests

    def count(watch: EtcdWatch) -> None:
        nonlocal requests
        requests += 1
        request(watch)

    monkeypatch.setattr(EtcdWatch, "request_progress", count)
    monkeypatch.setattr(reflector, "PROGRESS_SECONDS", 3600.0)
    others = factory.resource(StorageConfig("others", "v1", "Other"))
    await create(pods, "a/x")
    await pods.ready()
    for number in range(3):
        await create(others, f"a/{number}")  # the watch of the pods gets no event of it
        before = requests
        read = asyncio.create_task(pods.get("a/x"))
        await eventually(number_of_requests, partial(operator.lt, before), timeout=freshness.TIMEOUT)
        assert await read is not None


@pytest.mark.parametrize("watches", [1, 20], ids=["few watch", "many watch"])
async def test_a_read_during_many_writes_includes_acknowledged_ones(pods: Cacher, watches: int) -> None:
    async def write_and_read(number: int) -> int:
        key = f"a/{number}"
        entry = await create(pods, key)
        entry = await pods.guaranteed_update(key, setting(n="1"))
        read = await pods.get(key)
        assert read is not None and read.revision == entry.revision
        page = await pods.list(ListQuery())
        assert int(page.resource_version) >= entry.revision
        assert {key: entry.revision}.items() <= {found.key: found.revision for found in page.entries}.items()
        return entry.revision

    async with contextlib.AsyncExitStack() as stack:
        seen = [await stack.enter_async_context(watching(pods)) for _ in range(watches)]
        revisions = await asyncio.gather(*map(write_and_read, range(100)))
        for events in {seen[0], seen[-1]}:
            received = [(await events.next()).revision for _ in range(200)]
            assert received == sorted(set(received)) and received[-1] == max(revisions)


async def test_a_read_sees_what_another_process_wrote(
    factory: CachingStorageFactory, backend: Backend, root: str
) -> None:
    mine, others = factory.resource(PODS), Cacher(backend, PODS, root=root)
    await mine.ready()
    for number in range(5):
        written = await others.create(f"a/{number}", pod("a", str(number)))
        read = await mine.get(f"a/{number}")
        assert read is not None and read.revision == written.revision
    await others.close()


async def test_reads_at_the_same_time_are_all_answered(pods: Cacher) -> None:
    entry = await create(pods, "a/x")
    reads = await asyncio.gather(*(pods.get("a/x") for _ in range(200)))
    assert {read.revision for read in reads if read is not None} == {entry.revision}


async def test_a_get_not_older_than_a_revision_waits_for_it(pods: Cacher) -> None:
    await create(pods, "a/x")
    entry = await create(pods, "a/y")
    read = await pods.get("a/y", str(entry.revision))
    assert read is not None
    assert await pods.get("a/z", "0") is None


async def test_a_revision_of_the_future_is_too_large(pods: Cacher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.cacher.freshness.TIMEOUT", 0.2)
    entry = await create(pods, "a/x")
    await pods.ready()
    beyond = str(entry.revision + 100_000)
    for read in (
        pods.get("a/x", beyond),
        pods.list(ListQuery(resource_version=beyond)),
        pods.list(ListQuery(resource_version=beyond, match="Exact")),
    ):
        with pytest.raises(TooLargeResourceVersion, match=f"Too large resource version: {beyond}, current: "):
            await read


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("abc", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("1.5", "invalid syntax"),
        ("18446744073709551616", "value out of range"),
    ],
)
async def test_an_unreadable_version_is_rejected(pods: Cacher, version: str, text: str) -> None:
    expected = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": {text}'
    with pytest.raises(ValueError) as listed:
        await pods.list(ListQuery(resource_version=version))
    assert str(listed.value) == f"invalid resource version: {expected}"
    with pytest.raises(ValueError) as got:
        await pods.get("a/x", version)
    assert str(got.value) == expected


async def test_a_list_is_sorted_and_knows_namespaces(pods: Cacher) -> None:
    await create(pods, "b/x", "a/y", "a/x", "a-b/x", "ab/x")
    assert names((await pods.list(ListQuery())).entries) == ["a-b/x", "a/x", "a/y", "ab/x", "b/x"]
    assert names((await pods.list(ListQuery(prefix="a/"))).entries) == ["a/x", "a/y"]
    assert names((await pods.list(ListQuery(prefix="a/x", single=True))).entries) == ["a/x"]
    await reached(pods, max(entry.revision for entry in (await pods.list(ListQuery())).entries))
    assert names((await pods.list(ListQuery(prefix="a/", resource_version="0"))).entries) == ["a/x", "a/y"]
    assert await pods.count() == 5


async def test_selectors_choose_by_labels_and_by_fields(pods: Cacher) -> None:
    await create(pods, "a/x", tier="front")
    await create(pods, "a/y", tier="back")
    assert names((await pods.list(ListQuery(predicate=labelled(tier="back")))).entries) == ["a/y"]
    assert names((await pods.list(ListQuery(predicate=image("i")))).entries) == ["a/x", "a/y"]
    assert (await pods.list(ListQuery(predicate=image("other")))).entries == []


async def pages(pods: Cacher, limit: int, first: ListPage, **query: object) -> list[str]:
    seen, page = names(first.entries), first
    while page.continue_token:
        page = await pods.list(ListQuery(limit=limit, continue_token=page.continue_token, **query))  # type: ignore[arg-type]
        seen += names(page.entries)
    return seen


async def test_pages_show_one_revision_despite_concurrent_writes(pods: Cacher) -> None:
    await create(pods, *(f"a/{number}" for number in range(10)))
    first = await pods.list(ListQuery(limit=3))
    assert (len(first.entries), first.remaining) == (3, 7)
    await pods.delete("a/5")
    await pods.guaranteed_update("a/6", setting(changed="yes"))
    await create(pods, "a/55")
    second = await pods.list(ListQuery(limit=4, continue_token=first.continue_token))
    assert names(second.entries) == ["a/3", "a/4", "a/5", "a/6"]
    assert second.entries[3].labels == {}
    assert second.resource_version == first.resource_version
    assert second.remaining == 3
    last = await pods.list(ListQuery(continue_token=second.continue_token))
    assert (names(last.entries), last.continue_token, last.remaining) == (["a/7", "a/8", "a/9"], "", None)


async def test_pages_of_a_selector_do_not_tell_what_remains(pods: Cacher) -> None:
    await create(pods, "a/1", "a/3", "a/5", odd="1")
    await create(pods, "a/2", "a/4")
    first = await pods.list(ListQuery(limit=1, predicate=labelled(odd="1")))
    assert (names(first.entries), first.remaining) == (["a/1"], None)
    assert await pages(pods, 1, first, predicate=labelled(odd="1")) == ["a/1", "a/3", "a/5"]
    none = await pods.list(ListQuery(limit=1, predicate=labelled(no="such")))
    assert (none.entries, none.continue_token) == ([], "")


async def test_pages_stay_within_their_namespace(pods: Cacher) -> None:
    await create(pods, "a/1", "b/1", "b/2", "b/3", "c/1")
    first = await pods.list(ListQuery(prefix="b/", limit=2))
    assert first.remaining == 1
    assert await pages(pods, 2, first, prefix="b/") == ["b/1", "b/2", "b/3"]


async def test_limit_is_ignored_where_any_version_will_do(pods: Cacher) -> None:
    last = await create(pods, "a/1", "a/2", "a/3")
    await reached(pods, last.revision)
    page = await pods.list(ListQuery(limit=2, resource_version="0"))
    assert (len(page.entries), page.continue_token) == (3, "")


async def test_exact_shows_the_past_and_not_older_than_the_present(pods: Cacher) -> None:
    await pods.ready()
    before = await create(pods, "a/1", "a/2", "a/3")
    await pods.delete("a/2")
    await create(pods, "a/4")
    asked = str(before.revision)
    exact = await pods.list(ListQuery(resource_version=asked, match="Exact"))
    assert (names(exact.entries), exact.resource_version) == (["a/1", "a/2", "a/3"], asked)
    legacy = await pods.list(ListQuery(resource_version=asked, limit=2))
    assert (names(legacy.entries), legacy.remaining, legacy.resource_version) == (["a/1", "a/2"], 1, asked)
    assert names(
        (await pods.list(ListQuery(prefix="a/2", single=True, resource_version=asked, match="Exact"))).entries
    ) == ["a/2"]
    now = await pods.list(
        ListQuery(resource_version=(await pods.list(ListQuery())).resource_version, match="NotOlderThan", limit=2)
    )
    assert (names(now.entries), now.remaining) == (["a/1", "a/3"], 1)


async def test_the_past_beyond_the_window_comes_from_the_backend(backend: Backend, root: str) -> None:
    pods = Cacher(backend, PODS, root=root, window=2)
    await pods.ready()
    before = await create(pods, "a/1", "a/2", "a/3", odd="1")
    for number in range(4, 9):
        await create(pods, f"a/{number}")
    await pods.delete("a/2")
    for predicate in (EVERYTHING, labelled(odd="1")):
        query = {"resource_version": str(before.revision), "match": "Exact", "predicate": predicate}
        assert names((await pods.list(ListQuery(**query))).entries) == ["a/1", "a/2", "a/3"]  # type: ignore[arg-type]
        first = await pods.list(ListQuery(limit=2, **query))  # type: ignore[arg-type]
        assert first.remaining == (1 if predicate.empty else None)
        assert await pages(pods, 2, first, predicate=predicate) == ["a/1", "a/2", "a/3"]
    await pods.close()


async def test_an_expired_token_offers_an_inconsistent_one(backend: Backend, root: str) -> None:
    pods = Cacher(backend, PODS, root=root, window=1)
    await pods.ready()
    await create(pods, "a/1", "a/2", "a/3")
    first = await pods.list(ListQuery(limit=1))
    await create(pods, "a/4", "a/5")
    gone = await pods.delete("a/2")
    await reached(pods, gone.revision)
    await backend.compact(await backend.revision())
    with pytest.raises(TooOldResourceVersion) as caught:
        await pods.list(ListQuery(limit=1, continue_token=first.continue_token))
    assert str(caught.value).startswith(
        "The provided continue parameter is too old to display a consistent list result."
    )
    fresh = await pods.list(ListQuery(limit=2, continue_token=caught.value.fresh_token))
    assert names(fresh.entries) == ["a/3", "a/4"]
    assert int(fresh.resource_version) > int(first.resource_version)
    assert await pages(pods, 2, fresh) == ["a/3", "a/4", "a/5"]
    with pytest.raises(TooOldResourceVersion, match="The resourceVersion for the provided list is too old"):
        await pods.list(ListQuery(resource_version=first.resource_version, match="Exact"))
    await pods.close()


async def test_a_compacted_version_is_gone_for_a_kind_that_has_not_changed_since(
    pods: Cacher, factory: CachingStorageFactory
) -> None:
    await pods.ready()
    await create(pods, "a/1", "a/2", "a/3")
    first = await pods.list(ListQuery(limit=1))
    others = factory.resource(StorageConfig("configmaps", "v1", "ConfigMap"))
    for number in range(3):
        await others.create(
            f"a/{number}",
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": str(number), "namespace": "a"}},
        )
    await factory.backend.compact(await factory.backend.revision())
    with pytest.raises(TooOldResourceVersion) as caught:
        await pods.list(ListQuery(limit=1, continue_token=first.continue_token))
    assert str(caught.value).startswith(
        "The provided continue parameter is too old to display a consistent list result."
    )
    rest = await pods.list(ListQuery(continue_token=caught.value.fresh_token))
    assert names(rest.entries) == ["a/2", "a/3"]
    for query in ({"match": "Exact"}, {"limit": 1}, {"prefix": "a/2", "single": True, "match": "Exact"}):
        with pytest.raises(TooOldResourceVersion, match="The resourceVersion for the provided list is too old"):
            await pods.list(ListQuery(resource_version=first.resource_version, **query))


async def test_an_empty_resource_lists_nothing_at_a_revision(pods: Cacher) -> None:
    page = await pods.list(ListQuery())
    assert page.entries == []
    assert int(page.resource_version) > 0
    assert await pods.count() == 0


async def test_an_unread_resource_has_no_task(factory: CachingStorageFactory) -> None:
    before = len(asyncio.all_tasks())
    storage = factory.resource(PODS)
    assert factory.resource(PODS) is storage
    assert len(asyncio.all_tasks()) == before


async def test_a_value_written_by_a_stock_server_is_served(pods: Cacher, backend: Backend, root: str) -> None:
    await pods.ready()
    values = {
        "go": b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"go"}}\n',
        "sorted": b'{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{}}',
        "odd": (
            b'{"data":{"metadata":{"a":"b"}},"kind":"Pod","metadata":{"name":"odd","resourceVersion":"1"},'
            b'"apiVersion":"v1"}'
        ),
    }
    for name, value in values.items():
        revision = (await backend.put_if(f"{root}/pods/a/{name}", value, 0)).revision
        entry = await pods.get(f"a/{name}")
        assert entry is not None
        wanted = orjson.loads(value)
        wanted["metadata"]["resourceVersion"] = str(revision)
        assert orjson.loads(entry.raw) == wanted


async def test_a_list_by_an_indexed_value_tests_only_the_objects_that_have_it(pods: Cacher) -> None:
    await create(pods, "a/x", "b/x", zone="1")
    await create(pods, "a/y", "a/z", zone="2")

    async def listed(zone: str, **query: str | int) -> tuple[list[str], list[str]]:
        tested: list[str] = []
        page = await pods.list(ListQuery(predicate=in_zone(zone, tested), **query))  # type: ignore[arg-type]
        return names(page.entries), tested

    assert await listed("2") == (["a/y", "a/z"], ["a/y", "a/z"])
    assert await listed("1", prefix="a/", resource_version="0") == (["a/x"], ["a/x"])
    assert await listed("2", limit=1) == (["a/y"], ["a/y"])
    await pods.guaranteed_update("a/x", setting(zone="2"))
    await pods.delete("a/z")
    last = await create(pods, "c/x", zone="1")
    await reached(pods, last.revision)
    assert await listed("1") == (["b/x", "c/x"], ["b/x", "c/x"])
    assert await listed("2") == (["a/x", "a/y"], ["a/x", "a/y"])
    assert await listed("3") == ([], [])
