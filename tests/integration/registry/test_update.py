"""Changes that PUT and PATCH may make.

Recordings: sem-update-no-change, sem-put-creates, sem-finalizers, crd-cr-finalizers, sem-dry-run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, Leases, Pods, Services, Widgets, new
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import ALL_METADATA, WHOLE_METADATA, PlainStatusStrategy, StatusStrategy
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Revalidation
from tetrapod.generic.storage.writes import Preconditions
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store("ConfigMap", "configmaps", ConfigMaps())


def put(obj: Object) -> Callable[[Object | None], Awaitable[Object]]:
    async def transform(current: Object | None) -> Object:
        return obj

    return transform


def patch(metadata: dict[str, Any] | None = None, **parts: Any) -> Callable[[Object | None], Awaitable[Object]]:
    async def transform(current: Object | None) -> Object:
        assert current is not None
        current["metadata"].update(metadata or {})
        current.update(parts)
        return current

    return transform


async def rejected(store: Store, ctx: Context, name: str, obj: Object, **more: Any) -> StatusError:
    with pytest.raises(StatusError) as rejection:
        await store.update(ctx, name, put(obj), **more)
    return rejection.value


async def test_an_update_replaces_what_users_own_and_restores_the_rest(store: Store, ctx: Context) -> None:
    before = (await store.create(ctx, new("ConfigMap", "a", labels={"x": "y"}))).object()["metadata"]
    body = new(
        "ConfigMap", "a", data={"n": "1"}, generateName="g-", generation=5, selfLink="/x", creationTimestamp=None
    )
    entry, created = await store.update(ctx, "a", put(body))
    meta = entry.object()["metadata"]
    assert not created
    assert entry.object()["data"] == {"n": "1"}
    assert (meta["uid"], meta["creationTimestamp"], meta["namespace"]) == (
        before["uid"],
        before["creationTimestamp"],
        "ns",
    )
    assert meta["generateName"] == "g-"
    assert not {"generation", "selfLink", "labels"} & meta.keys()
    assert int(meta["resourceVersion"]) > int(before["resourceVersion"])


async def test_an_update_that_changes_nothing_writes_nothing(store: Store, ctx: Context) -> None:
    before = await store.create(ctx, new("ConfigMap", "a", data={"n": "1", "m": "2"}))
    reordered = {"data": {"m": "2", "n": "1"}, **{k: v for k, v in before.object().items() if k != "data"}}
    entry, _ = await store.update(ctx, "a", put(reordered))
    assert entry.revision == before.revision


async def test_one_and_true_are_different(store: Store, ctx: Context) -> None:
    before = await store.create(ctx, new("ConfigMap", "a", data={"n": 1}))
    entry, _ = await store.update(ctx, "a", patch(data={"n": True}))
    assert entry.revision > before.revision
    assert entry.object()["data"]["n"] is True


async def test_times_in_managed_fields_alone_are_no_change(store: Store, ctx: Context) -> None:
    def managed(time: str) -> list[Object]:
        return [
            {
                "manager": "m",
                "operation": "Update",
                "apiVersion": "v1",
                "time": time,
                "fieldsType": "FieldsV1",
                "fieldsV1": {},
            }
        ]

    before = await store.create(ctx, new("ConfigMap", "a", managedFields=managed("2024-01-01T00:00:00Z")))
    entry, _ = await store.update(ctx, "a", patch({"managedFields": managed("2024-01-02T00:00:00Z")}))
    assert entry.revision == before.revision
    entry, _ = await store.update(ctx, "a", patch({"managedFields": managed("2024-01-02T00:00:00Z")}, data={"n": "1"}))
    assert entry.object()["metadata"]["managedFields"][0]["time"] == "2024-01-02T00:00:00Z"


async def test_an_update_cannot_set_deletion_times(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    rejection = await rejected(
        store, ctx, "a", new("ConfigMap", "a", deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=4)
    )
    assert rejection.message == (
        'ConfigMap "a" is invalid: [metadata.deletionTimestamp: Invalid value: '
        '"2001-01-01T00:00:00Z": field is immutable, '
        "metadata.deletionGracePeriodSeconds: Invalid value: 4: field is immutable]"
    )


async def test_a_stale_version_is_a_conflict(store: Store, ctx: Context) -> None:
    old = (await store.create(ctx, new("ConfigMap", "a"))).object()
    await store.update(ctx, "a", patch(data={"n": "1"}))
    rejection = await rejected(store, ctx, "a", old)
    assert (rejection.code, rejection.reason) == (409, "Conflict")
    assert rejection.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_versions_are_compared_as_numbers(store: Store, ctx: Context) -> None:
    version = (await store.create(ctx, new("ConfigMap", "a"))).revision
    entry, _ = await store.update(ctx, "a", patch({"resourceVersion": f"0{version}"}, data={"k": "v"}))
    assert entry.object()["data"] == {"k": "v"}


async def test_a_self_link_is_shown_by_a_dry_run_and_never_stored(store: Store, ctx: Context, dry: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    for context, shown in ((dry, True), (ctx, False)):
        entry, _ = await store.update(context, "a", patch({"selfLink": "/x"}, data={"k": "v"}))
        assert ("selfLink" in entry.object()["metadata"]) is shown


async def test_absence_is_not_found(store: Store, ctx: Context, dry: Context) -> None:
    for context in (ctx, dry):
        rejection = await rejected(store, context, "a", new("ConfigMap", "a"))
        assert (rejection.code, rejection.message) == (404, 'configmaps "a" not found')


async def test_another_uid_is_a_conflict_with_the_message_of_the_storage(store: Store, ctx: Context) -> None:
    uid = (await store.create(ctx, new("ConfigMap", "a"))).object()["metadata"]["uid"]
    rejection = await rejected(
        store, ctx, "a", new("ConfigMap", "a", uid="other"), preconditions=Preconditions(uid="other")
    )
    assert rejection.code == 409
    assert rejection.message == (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    )


async def test_a_patched_uid_is_immutable(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    with pytest.raises(StatusError) as rejection:
        await store.update(ctx, "a", patch({"uid": "other"}))
    assert (
        rejection.value.message == 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable'
    )


async def test_missing_uid_time_and_version_are_restored(store: Store, ctx: Context) -> None:
    before = (await store.create(ctx, new("ConfigMap", "a"))).object()
    entry, _ = await store.update(ctx, "a", patch({"uid": None, "creationTimestamp": None, "resourceVersion": None}))
    assert entry.object() == before


async def test_kinds_that_forbid_it_need_a_version(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Lease", "leases", Leases(), group="coordination.k8s.io")
    await store.create(ctx, new("Lease", "l"))
    rejection = await rejected(store, ctx, "l", new("Lease", "l", spec={"holderIdentity": "you"}))
    assert rejection.message == (
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
    assert rejection.details is not None
    assert rejection.details["kind"] == "leases"


async def test_put_creates_where_the_kind_allows_it(make_store: MakeStore, ctx: Context, dry: Context) -> None:
    store = make_store("Lease", "leases", Leases(), group="coordination.k8s.io")
    entry, created = await store.update(dry, "l", put(new("Lease", "l", resourceVersion="5")))
    assert created
    assert entry.object()["metadata"]["resourceVersion"] == "5"
    entry, created = await store.update(ctx, "l", put(new("Lease", "l", resourceVersion="5")))
    assert created
    assert entry.object()["metadata"]["uid"]
    assert entry.object()["metadata"]["resourceVersion"] == str(entry.revision)


async def test_put_does_not_create_what_had_a_uid(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Lease", "leases", Leases(), group="coordination.k8s.io")
    rejection = await rejected(
        store, ctx, "ghost", new("Lease", "ghost", uid="gone"), preconditions=Preconditions(uid="gone")
    )
    assert rejection.message.endswith("Precondition failed: UID in precondition: gone, UID in object meta: ")
    assert "Key: /registry/leases/ns/ghost," in rejection.message


async def test_apply_creates_objects_of_every_kind(store: Store, ctx: Context) -> None:
    seen: list[str] = []

    async def admit(obj: Object) -> None:
        seen.append(obj["metadata"]["name"])

    _, created = await store.update(ctx, "a", put(new("ConfigMap", "a")), force_create=True, validate_create=admit)
    assert created
    assert seen == ["a"]


async def test_another_namespace_is_rejected(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    rejection = await rejected(store, ctx, "a", new("ConfigMap", "a", namespace="other"))
    assert rejection.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_a_deleted_object_gains_no_finalizers_but_changes_otherwise(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", finalizers=["example.com/one", "example.com/two"]))
    marked, _ = await store.delete(ctx, "a", {})
    stamp = marked.object()["metadata"]["deletionTimestamp"]
    with pytest.raises(StatusError) as rejection:
        await store.update(ctx, "a", patch({"finalizers": ["example.com/one", "example.com/three"]}))
    assert rejection.value.message == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.com/three"}'
    )
    assert len(rejection.value.to_status()["details"]["causes"]) == 1
    wiped = {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}
    entry, _ = await store.update(ctx, "a", patch(wiped, data={"n": "2"}))
    meta = entry.object()["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == (stamp, 0)


async def test_custom_resources_repeat_errors_about_metadata(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Widget", "widgets", Widgets(), group="example.com")
    await store.create(ctx, new("Widget", "w"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u", "controller": True}
    with pytest.raises(StatusError) as rejection:
        await store.update(ctx, "w", patch({"ownerReferences": [owner, {**owner, "name": "d"}]}))
    assert len(rejection.value.to_status()["details"]["causes"]) == 2  # and a third by its own strategy


async def test_taking_the_last_finalizer_removes_a_deleted_object(
    make_store: MakeStore, ctx: Context, dry: Context
) -> None:
    strategy = Services()
    store = make_store("Service", "services", strategy)
    await store.create(ctx, new("Service", "a", finalizers=["example.com/x"]))
    await store.delete(ctx, "a", {})
    shown, _ = await store.update(dry, "a", patch({"finalizers": []}))
    assert not shown.object()["metadata"]["finalizers"]
    await store.get(ctx, "a")
    last, created = await store.update(ctx, "a", patch({"finalizers": []}, data={"n": "3"}))
    assert (last.object()["data"], created) == ({"n": "3"}, False)
    assert last.object()["metadata"]["deletionTimestamp"]
    assert strategy.deleted == ["a"]
    with pytest.raises(StatusError, match="not found"):
        await store.get(ctx, "a")


async def test_generation_follows_spec_and_status_stays(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Pod", "pods", Pods())
    await store.create(ctx, new("Pod", "p", spec={"nodeName": "n"}))
    entry, _ = await store.update(ctx, "p", patch({"labels": {"a": "b"}}, status={"phase": "Running"}))
    assert entry.object()["metadata"]["generation"] == 1
    assert entry.object()["status"] == {"phase": "Pending"}
    entry, _ = await store.update(ctx, "p", patch({"generation": 7}, spec={"nodeName": "m"}))
    assert entry.object()["metadata"]["generation"] == 2


async def test_a_status_update_changes_status_only(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Pod", "pods", Pods())
    await store.create(ctx, new("Pod", "p", spec={"nodeName": "n"}, labels={"a": "b"}))
    all_kept = StatusStrategy(store.strategy, keep_metadata=ALL_METADATA)
    changes = {"labels": {"c": "d"}, "annotations": {"e": "f"}, "generation": 9}
    transform = patch(changes, spec={}, status={"phase": "Running"})
    obj = (await store.update(ctx, "p", transform, strategy=all_kept))[0].object()
    assert obj["status"] == {"phase": "Running"}
    assert obj["spec"] == {"nodeName": "n"}
    assert (obj["metadata"]["labels"], obj["metadata"]["generation"]) == ({"a": "b"}, 1)
    assert "annotations" not in obj["metadata"]
    obj = (
        await store.update(ctx, "p", patch(changes), strategy=StatusStrategy(store.strategy, keep_metadata=("labels",)))
    )[0].object()
    assert (obj["metadata"]["labels"], obj["metadata"]["annotations"]) == ({"a": "b"}, {"e": "f"})


async def test_generate_name_is_judged_by_the_kind_only_where_its_validation_runs_again(
    make_store: MakeStore, ctx: Context
) -> None:
    class Again(Pods):
        revalidates_generate_name: Revalidation = "after finalizers"

    for name, strategy, rejected in (("pods", Pods(), False), ("others", Again(), True)):
        store = make_store("Pod", name, strategy)
        await store.create(ctx, new("Pod", "p"))
        with pytest.raises(StatusError, match="may not contain '/'"):
            await store.update(ctx, "p", patch({"generateName": "a/b"}))
        if rejected:
            with pytest.raises(StatusError, match="a lowercase RFC 1123"):
                await store.update(ctx, "p", patch({"generateName": "Bad_Name"}))
        else:
            entry, _ = await store.update(ctx, "p", patch({"generateName": "Bad_Name"}))
            assert entry.object()["metadata"]["generateName"] == "Bad_Name"


async def test_a_plain_status_takes_finalizers_without_a_domain(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Pod", "pods", Pods())
    await store.create(ctx, new("Pod", "p"))
    with pytest.raises(StatusError, match="fully qualified"):
        await store.update(ctx, "p", patch({"finalizers": ["x"]}), strategy=StatusStrategy(store.strategy))
    await store.update(ctx, "p", patch({"finalizers": ["x"]}), strategy=PlainStatusStrategy(store.strategy))


def test_a_status_that_keeps_several_metadata_fields_resets_all_metadata() -> None:
    main = Pods()
    assert StatusStrategy(main, keep_metadata=WHOLE_METADATA).reset_fields("v1") == [("spec",), ("metadata",)]
    assert StatusStrategy(main, keep_metadata=("labels",)).reset_fields("v1") == [("spec",), ("metadata", "labels")]


async def test_admission_rejects_with_both_objects_in_hand(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", data={"n": "1"}))
    seen: list[tuple[Any, Any]] = []

    async def reject(changed: Object, old: Object) -> None:
        seen.append((changed["data"], old["data"]))
        raise bad_request("no")

    with pytest.raises(StatusError, match="no"):
        await store.update(ctx, "a", patch(data={"n": "2"}), validate_update=reject)
    assert seen == [({"n": "2"}, {"n": "1"})]
    assert (await store.get(ctx, "a")).object()["data"] == {"n": "1"}


async def test_a_race_is_tried_again_on_the_newer_object(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", data={"n": "1"}))
    tries: list[Any] = []

    async def transform(current: Object | None) -> Object:
        assert current is not None
        tries.append(dict(current["data"]))
        if len(tries) == 1:
            await store.update(ctx, "a", patch(data={"n": "2"}))
        current["metadata"].pop("resourceVersion")
        current["data"]["mine"] = "x"
        return current

    entry, _ = await store.update(ctx, "a", transform)
    assert tries == [{"n": "1"}, {"n": "2"}]
    assert entry.object()["data"] == {"n": "2", "mine": "x"}


async def test_allocations_of_a_rejected_update_are_released(make_store: MakeStore, ctx: Context) -> None:
    strategy = Services()
    store = make_store("Service", "services", strategy)
    await store.create(ctx, new("Service", "s"))
    strategy.ended.clear()
    await store.update(ctx, "s", patch(data={"n": "1"}))
    with pytest.raises(StatusError):
        await store.update(ctx, "s", patch({"labels": {"bad key": "x"}}))
    assert strategy.ended == [("update s", True), ("update s", False)]


async def test_a_dry_run_shows_the_result_under_the_stored_version(store: Store, ctx: Context, dry: Context) -> None:
    before = await store.create(ctx, new("ConfigMap", "a", data={"n": "1"}))
    entry, _ = await store.update(dry, "a", patch(data={"n": "2"}))
    assert entry.object()["data"] == {"n": "2"}
    assert entry.object()["metadata"]["resourceVersion"] == str(before.revision)
    assert (await store.get(ctx, "a")).object()["data"] == {"n": "1"}
