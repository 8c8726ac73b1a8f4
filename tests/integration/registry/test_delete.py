"""DELETE: grace, finalizers, propagation, preconditions.

Recordings: sem-delete-*, sem-finalizers, sem-pod-grace*, core-pod-graceful-deletion.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, Events, Jobs, Pods, Services, new
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.store import Store
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store("ConfigMap", "configmaps", ConfigMaps())


@pytest.fixture
def pods(make_store: MakeStore) -> Store:
    return make_store("Pod", "pods", Pods())


async def rejected(store: Store, ctx: Context, name: str, options: Object) -> StatusError:
    with pytest.raises(StatusError) as rejection:
        await store.delete(ctx, name, options)
    return rejection.value


async def gone(store: Store, ctx: Context, name: str) -> bool:
    try:
        await store.get(ctx, name)
    except StatusError as rejection:
        assert rejection.code == 404
        return True
    return False


async def test_a_plain_object_goes_at_once(store: Store, ctx: Context) -> None:
    uid = (await store.create(ctx, new("ConfigMap", "a"))).object()["metadata"]["uid"]
    entry, deleted = await store.delete(ctx, "a", {"gracePeriodSeconds": -5})
    assert deleted
    assert entry.object()["metadata"]["uid"] == uid
    assert "deletionTimestamp" not in entry.object()["metadata"]
    assert (await rejected(store, ctx, "a", {})).message == 'configmaps "a" not found'


async def test_finalizers_hold_an_object_marked(store: Store, ctx: Context, dry: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", finalizers=["example.com/x"], generation=3))
    shown, deleted = await store.delete(dry, "a", {})
    assert shown.object()["metadata"]["deletionTimestamp"]
    assert not deleted
    assert "deletionTimestamp" not in (await store.get(ctx, "a")).object()["metadata"]
    marked, deleted = await store.delete(ctx, "a", {})
    meta = marked.object()["metadata"]
    assert not deleted
    assert (meta["deletionGracePeriodSeconds"], meta["generation"], meta["finalizers"]) == (0, 4, ["example.com/x"])
    again, deleted = await store.delete(ctx, "a", {})
    assert not deleted
    assert again.revision == marked.revision


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
        ({"propagationPolicy": "Background"}, None),
        ({"orphanDependents": False}, None),
        ({}, None),
    ],
)
async def test_the_policy_becomes_a_finalizer(store: Store, ctx: Context, options: Object, finalizers: Any) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    entry, deleted = await store.delete(ctx, "a", options)
    assert deleted is (finalizers is None)
    assert entry.object()["metadata"].get("finalizers") == finalizers
    assert await gone(store, ctx, "a") is deleted


async def test_a_request_overrides_the_policy_on_the_object(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", finalizers=["orphan"]))
    await store.create(ctx, new("ConfigMap", "b", finalizers=["orphan", "example.com/x"]))
    await store.create(ctx, new("ConfigMap", "c", finalizers=["orphan"]))
    _, deleted = await store.delete(ctx, "a", {"propagationPolicy": "Background"})
    assert deleted
    entry, _ = await store.delete(ctx, "b", {"propagationPolicy": "Foreground"})
    assert entry.object()["metadata"]["finalizers"] == ["example.com/x", "foregroundDeletion"]
    entry, _ = await store.delete(ctx, "c", {})
    assert entry.object()["metadata"]["finalizers"] == ["orphan"]


async def test_kinds_differ_in_their_default_policy(make_store: MakeStore, ctx: Context) -> None:
    jobs, events = make_store("Job", "jobs", Jobs(), group="batch"), make_store("Event", "events", Events())
    await jobs.create(ctx, new("Job", "j", spec={}))
    await events.create(ctx, new("Event", "e"))
    entry, deleted = await jobs.delete(ctx, "j", {})
    assert (deleted, entry.object()["metadata"]["finalizers"]) == (False, ["orphan"])
    _, deleted = await events.delete(ctx, "e", {"propagationPolicy": "Foreground"})
    assert deleted


async def test_preconditions_name_the_kind(store: Store, ctx: Context, dry: Context) -> None:
    meta = (await store.create(ctx, new("ConfigMap", "a"))).object()["metadata"]
    for context in (ctx, dry):
        rejection = await rejected(store, context, "a", {"preconditions": {"uid": "x"}})
        assert (rejection.code, rejection.details) == (409, {"name": "a", "kind": "ConfigMap"})
        assert rejection.message == (
            'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID '
            f"in record ({meta['uid']}). The object might have been deleted and then recreated"
        )
        rejection = await rejected(
            store, context, "a", {"preconditions": {"resourceVersion": "999", "uid": meta["uid"]}}
        )
        assert rejection.message.endswith(
            "the ResourceVersion in the precondition (999) does not match the ResourceVersion in record "
            f"({meta['resourceVersion']}). The object might have been modified"
        )
    both = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    assert (await store.delete(ctx, "a", both))[1]


async def test_unsafe_deletion_is_for_objects_that_cannot_be_read(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    with pytest.raises(StatusError) as rejection:
        await store.delete_unreadable(ctx, "a")
    assert rejection.value.message == (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: "
        "unsafe deletion is not allowed because the object is decodable from storage"
    )


async def test_a_dry_run_deletes_nothing(store: Store, ctx: Context, dry: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    _, deleted = await store.delete(dry, "a", {})
    assert deleted
    assert not await gone(store, ctx, "a")


async def test_a_running_pod_gets_its_grace_period_and_may_get_less_never_more(pods: Store, ctx: Context) -> None:
    await pods.create(ctx, new("Pod", "p", spec={"nodeName": "n", "terminationGracePeriodSeconds": 50}))

    async def delete(seconds: int | None) -> tuple[Object, bool]:
        entry, deleted = await pods.delete(ctx, "p", {} if seconds is None else {"gracePeriodSeconds": seconds})
        return entry.object()["metadata"], deleted

    first, deleted = await delete(None)
    assert (first["deletionGracePeriodSeconds"], first["generation"], deleted) == (50, 2, False)
    assert _seconds(first["creationTimestamp"], first["deletionTimestamp"]) in range(50, 60)
    longer, _ = await delete(100)
    assert longer == first
    shorter, _ = await delete(20)
    assert (shorter["deletionGracePeriodSeconds"], shorter["generation"]) == (20, 2)
    assert _seconds(shorter["deletionTimestamp"], first["deletionTimestamp"]) == 30
    last, deleted = await delete(0)
    assert (last["deletionGracePeriodSeconds"], deleted) == (0, True)
    assert await gone(pods, ctx, "p")


def _seconds(start: str, end: str) -> int:
    return int((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


async def test_a_negative_grace_period_is_a_second(pods: Store, ctx: Context) -> None:
    await pods.create(ctx, new("Pod", "p", spec={"nodeName": "n"}))
    entry, deleted = await pods.delete(ctx, "p", {"gracePeriodSeconds": -1})
    assert (entry.object()["metadata"]["deletionGracePeriodSeconds"], deleted) == (1, False)


async def test_a_pod_that_runs_nowhere_goes_at_once_and_is_shown_marked(pods: Store, ctx: Context) -> None:
    await pods.create(ctx, new("Pod", "p", spec={}))
    entry, deleted = await pods.delete(ctx, "p", {"gracePeriodSeconds": 60})
    meta = entry.object()["metadata"]
    assert deleted
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (0, 2)
    assert await gone(pods, ctx, "p")


async def test_grace_and_finalizers_hold_together(pods: Store, ctx: Context) -> None:
    await pods.create(ctx, new("Pod", "p", spec={"nodeName": "n"}))
    entry, _ = await pods.delete(ctx, "p", {"gracePeriodSeconds": 30, "propagationPolicy": "Foreground"})
    assert entry.object()["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def release(current: Object | None) -> Object:
        assert current is not None
        del current["metadata"]["finalizers"]
        return current

    await pods.update(ctx, "p", release)
    assert not await gone(pods, ctx, "p")  # the grace period is not over
    _, deleted = await pods.delete(ctx, "p", {"gracePeriodSeconds": 0})
    assert deleted


async def test_a_version_precondition_survives_the_mark(pods: Store, ctx: Context) -> None:
    meta = (await pods.create(ctx, new("Pod", "p", spec={}))).object()["metadata"]
    _, deleted = await pods.delete(ctx, "p", {"preconditions": {"resourceVersion": meta["resourceVersion"]}})
    assert deleted


async def test_admission_can_reject_and_the_allocation_is_released_once(make_store: MakeStore, ctx: Context) -> None:
    strategy = Services()
    store = make_store("Service", "services", strategy)
    await store.create(ctx, new("Service", "s"))
    seen: list[str] = []

    async def reject(obj: Object) -> None:
        seen.append(obj["metadata"]["name"])
        raise bad_request("no")

    with pytest.raises(StatusError, match="no"):
        await store.delete(ctx, "s", {}, reject)
    assert (seen, strategy.deleted) == (["s"], [])
    await store.delete(ctx, "s", {})
    assert strategy.deleted == ["s"]
