"""Lists, watches and collection deletes.

Recordings: sem-list-pages, sem-field-selectors, sem-deletecollection, disc-params-*.
"""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, Pods, define, new
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.predicate import Selection, select
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListPage, ListQuery, WatchQuery
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, forbidden


@pytest.fixture
async def pods(make_store: MakeStore) -> Store:
    store = make_store("Pod", "pods", Pods())
    for namespace, name, node in (("ns", "a", "n1"), ("ns", "b", "n2"), ("ns", "c", ""), ("other", "a", "n1")):
        labels = {"node": "yes"} if node else {}
        await store.create(Context(namespace=namespace), new("Pod", name, labels=labels, spec={"nodeName": node}))
    return store


async def names(store: Store, namespace: str, labels: str = "", fields: str = "") -> list[str]:
    selection = select(cast(ResourceDefinition, store.definition), namespace, labels, fields, "v1")
    page = await store.list(Context(namespace=namespace), _query(selection))
    return [entry.key for entry in page.entries]


def _query(selection: Selection) -> ListQuery:
    return ListQuery(prefix=selection.prefix, predicate=selection.predicate, single=selection.single)


async def test_selectors_choose_by_label_and_field(pods: Store) -> None:
    assert await names(pods, "ns") == ["ns/a", "ns/b", "ns/c"]
    assert await names(pods, "") == ["ns/a", "ns/b", "ns/c", "other/a"]
    assert await names(pods, "ns", "node") == ["ns/a", "ns/b"]
    assert await names(pods, "ns", "", "spec.nodeName=n1") == ["ns/a"]
    assert await names(pods, "", "", "spec.nodeName=n1") == ["ns/a", "other/a"]
    assert await names(pods, "ns", "", "spec.nodeName=") == ["ns/c"]
    assert await names(pods, "ns", "node=yes", "spec.nodeName!=n1,status.phase==Pending") == ["ns/b"]


async def test_names_and_namespaces_are_fields_of_every_kind(pods: Store) -> None:
    assert await names(pods, "ns", "", "metadata.name=a") == ["ns/a"]
    assert await names(pods, "", "", "metadata.name=a") == ["ns/a", "other/a"]
    assert await names(pods, "", "", "metadata.namespace=other,metadata.name=a") == ["other/a"]
    assert await names(pods, "ns", "", "metadata.namespace=other") == []
    assert await names(pods, "ns", "", "metadata.name!=a") == ["ns/b", "ns/c"]
    assert await names(pods, "ns", "", "metadata.name=absent") == []
    assert await names(pods, "ns", "", "metadata.name=a,spec.nodeName=n2") == []


def test_a_selector_of_one_object_asks_for_its_key() -> None:
    definition = define("ConfigMap", "configmaps", ConfigMaps())
    assert select(definition, "ns", "", "metadata.name=a")[::2] == ("ns/a", True)
    assert select(definition, "", "", "metadata.name=a,metadata.namespace=ns")[::2] == ("ns/a", True)
    assert select(definition, "", "", "metadata.name=a")[::2] == ("", False)
    assert select(definition, "", "", "metadata.namespace=ns")[::2] == ("ns/", False)
    assert select(definition, "", "", "metadata.namespace=Bad_")[::2] == ("", False)
    assert select(definition, "ns", "", "metadata.name=a/b")[::2] == ("ns/", False)
    assert select(definition, "ns", "x", "")[::2] == ("ns/", False)
    assert select(definition, "ns").predicate.empty


@pytest.mark.parametrize(
    ("labels", "fields", "text"),
    [
        (",,", "nope=1", "found ',', expected: !, identifier, or 'end of string'"),
        ("", "nope=1", '"nope" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("", "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
    ],
)
def test_selectors_that_cannot_be_read_are_rejected(labels: str, fields: str, text: str) -> None:
    with pytest.raises(StatusError) as rejection:
        select(define("ConfigMap", "configmaps", ConfigMaps()), "ns", labels, fields)
    assert (rejection.value.code, rejection.value.message) == (400, text)


def test_kinds_with_own_selectable_fields_have_another_error() -> None:
    with pytest.raises(StatusError) as rejection:
        select(define("Pod", "pods", Pods()), "ns", "", "nope=1")
    assert rejection.value.message == "field label not supported: nope"


async def test_a_collection_delete_answers_with_what_was_there(pods: Store, ctx: Context, dry: Context) -> None:
    query = _query(select(cast(ResourceDefinition, pods.definition), "ns", "node", "", "v1"))
    page = await pods.delete_collection(dry, {"gracePeriodSeconds": 0}, query)
    assert isinstance(page, ListPage)
    assert [entry.name for entry in page.entries] == ["a", "b"]
    assert await names(pods, "ns") == ["ns/a", "ns/b", "ns/c"]
    page = await pods.delete_collection(ctx, {"gracePeriodSeconds": 0}, query)
    assert [entry.name for entry in page.entries] == ["a", "b"]
    assert not any("deletionTimestamp" in entry.object()["metadata"] for entry in page.entries)
    assert page.resource_version
    assert await names(pods, "ns") == ["ns/c"]
    assert await names(pods, "other") == ["other/a"]


async def test_a_limit_bounds_a_collection_delete(pods: Store, ctx: Context) -> None:
    page = await pods.delete_collection(ctx, {"gracePeriodSeconds": 0}, ListQuery(prefix="ns/", limit=1))
    assert [entry.name for entry in page.entries] == ["a"]
    assert page.continue_token
    assert await names(pods, "ns") == ["ns/b", "ns/c"]


async def test_each_object_of_a_collection_settles_its_own_grace_period(pods: Store, ctx: Context) -> None:
    await pods.delete_collection(ctx, {}, ListQuery(prefix="ns/"))
    assert await names(pods, "ns") == ["ns/a", "ns/b"]  # c never ran, the others have 30 seconds
    grace = (await pods.get(ctx, "a")).object()["metadata"]["deletionGracePeriodSeconds"]
    assert grace == 30


async def test_a_rejection_ends_a_collection_delete(pods: Store, ctx: Context) -> None:
    with pytest.raises(StatusError) as rejection:
        await pods.delete_collection(ctx, {"preconditions": {"uid": "x"}}, ListQuery(prefix="ns/"))
    assert 'on Pod "a"' in rejection.value.message
    assert await names(pods, "ns") == ["ns/a", "ns/b", "ns/c"]


async def test_objects_that_vanish_at_the_same_time_are_ignored(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("ConfigMap", "configmaps", ConfigMaps())
    for i in range(20):
        await store.create(ctx, new("ConfigMap", f"a{i:02}"))
    rival = True

    async def admit(obj: Object) -> None:
        nonlocal rival
        if rival:
            rival = False
            await asyncio.gather(*(store.delete(ctx, f"a{i:02}", {}) for i in range(1, 20)), return_exceptions=True)

    page = await store.delete_collection(ctx, {}, ListQuery(prefix="ns/"), admit)
    assert len(page.entries) == 20
    assert await names(store, "ns") == []


async def test_admission_is_asked_about_each_object(pods: Store, ctx: Context) -> None:
    async def reject(obj: Object) -> None:
        raise forbidden(pods.resource, obj["metadata"]["name"], "no")

    with pytest.raises(StatusError, match="is forbidden: no"):
        await pods.delete_collection(ctx, {}, ListQuery(prefix="ns/"), reject)


async def test_a_watch_sees_the_life_of_an_object(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("ConfigMap", "configmaps", ConfigMaps())
    before = await store.create(ctx, new("ConfigMap", "before"))
    watch = await store.watch(ctx, WatchQuery(prefix="ns/", resource_version=str(before.revision)))
    await store.create(ctx, new("ConfigMap", "a", finalizers=["example.com/x"]))
    await store.delete(ctx, "a", {})
    await store.update(ctx, "a", _release)
    seen: list[tuple[str, Entry | None]] = []
    async for batch in watch:
        seen += [(event.type, event.entry) for event in batch]
        if seen[-1][0] == "DELETED":
            break
    watch.close()
    assert [kind for kind, _ in seen] == ["ADDED", "MODIFIED", "DELETED"]


async def _release(current: Object | None) -> Object:
    assert current is not None
    del current["metadata"]["finalizers"]
    return current


async def test_a_version_that_is_no_number_is_a_bad_request(pods: Store, ctx: Context) -> None:
    with pytest.raises(StatusError) as rejection:
        await pods.list(ctx, ListQuery(prefix="ns/", resource_version="abc"))
    assert rejection.value.code == 400
    assert 'resourceVersion: Invalid value: "abc"' in rejection.value.message


async def test_a_token_from_before_compaction_is_expired_and_replaced(
    pods: Store, ctx: Context, backend: SqliteBackend
) -> None:
    first = await pods.list(ctx, ListQuery(prefix="ns/", limit=1))
    await pods.create(ctx, new("Pod", "bb", spec={}))
    await backend.compact(await backend.revision())
    later = CachingStorageFactory(backend)  # a server without a cached history
    store = Store(pods.definition, later.resource(StorageConfig("pods", "v1", "Pod")))
    with pytest.raises(StatusError) as rejection:
        await store.list(ctx, ListQuery(prefix="ns/", limit=1, continue_token=first.continue_token))
    answer = rejection.value.to_status()
    assert (answer["code"], answer["reason"]) == (410, "Expired")
    assert answer["message"].startswith(
        "The provided continue parameter is too old to display a consistent list result."
    )
    rest = await store.list(ctx, ListQuery(prefix="ns/", continue_token=answer["metadata"]["continue"]))
    assert [entry.name for entry in rest.entries] == ["b", "bb", "c"]
    await later.close()
