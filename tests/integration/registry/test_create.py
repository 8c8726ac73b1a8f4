"""The stored object after a POST.

Recordings: sem-generate-name, sem-namespace-mismatch, sem-update-no-change, sem-dry-run.
"""

from __future__ import annotations

import re

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, Events, Pods, Services, Widgets, new
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store("ConfigMap", "configmaps", ConfigMaps())


async def test_create_gives_uid_time_namespace_and_version(store: Store, ctx: Context) -> None:
    entry = await store.create(ctx, new("ConfigMap", "a", data={"k": "v"}))
    meta = entry.peek()["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["namespace"] == "ns"
    assert meta["resourceVersion"] == str(entry.revision)
    assert (await store.get(ctx, "a")).peek() == entry.peek()


async def test_create_sets_uid_and_time_and_keeps_generation(store: Store, ctx: Context) -> None:
    obj = new("ConfigMap", "b", selfLink="/x", generation=5, creationTimestamp="2001-01-01T00:00:00Z", uid="mine")
    meta = (await store.create(ctx, obj)).peek()["metadata"]
    assert meta["generation"] == 5
    assert "selfLink" not in meta
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] > "2020"


async def test_deletion_metadata_set_by_admission_is_stored(store: Store, ctx: Context) -> None:
    """Requests cannot set it: the endpoint removes it before admission."""
    deletion = {"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 4}
    meta = (await store.create(ctx, new("ConfigMap", "b", finalizers=["example.com/hold"], **deletion))).peek()[
        "metadata"
    ]
    assert deletion.items() <= meta.items()


async def test_a_dry_run_shows_the_version_that_it_was_given(store: Store, dry: Context) -> None:
    entry = await store.create(dry, new("ConfigMap", "a", resourceVersion="5"))
    assert entry.object()["metadata"]["resourceVersion"] == "5"


async def test_another_namespace_is_rejected(store: Store, ctx: Context) -> None:
    with pytest.raises(StatusError) as rejected:
        await store.create(ctx, new("ConfigMap", "a", namespace="default"))
    assert rejected.value.code == 400
    assert (
        rejected.value.message
        == "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_a_namespace_on_a_cluster_scoped_object_is_dropped(make_store: MakeStore) -> None:
    store = make_store("Node", "nodes", ConfigMaps(), namespaced=False)
    entry = await store.create(Context(), new("Node", "n", namespace="default"))
    assert "namespace" not in entry.peek()["metadata"]
    assert entry.key == "n"


async def test_generate_name_appends_five_characters_and_fits_a_label(store: Store, ctx: Context) -> None:
    short = await store.create(ctx, new("ConfigMap", generateName="pre-"))
    long = await store.create(ctx, new("ConfigMap", generateName="a234567890" * 7))
    assert re.fullmatch("pre-[bcdfghjklmnpqrstvwxz2456789]{5}", short.name)
    assert len(long.name) == 63
    assert long.peek()["metadata"]["generateName"] == "a234567890" * 7


async def test_a_given_name_goes_before_generate_name(store: Store, ctx: Context) -> None:
    assert (await store.create(ctx, new("ConfigMap", "given", generateName="pre-"))).name == "given"


async def test_without_any_name_the_name_is_required(store: Store, ctx: Context) -> None:
    with pytest.raises(StatusError) as rejected:
        await store.create(ctx, {"kind": "ConfigMap", "apiVersion": "v1"})
    assert (
        rejected.value.message
        == 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


@pytest.mark.parametrize("large", [False, True])
async def test_generated_names_that_are_taken_are_tried_again(make_store: MakeStore, ctx: Context, large: bool) -> None:
    ctx.large = large

    class Counting(ConfigMaps):
        suffixes = iter("aaab")

        def generate_name(self, base: str) -> str:
            return base + next(self.suffixes)

    store = make_store("ConfigMap", "configmaps", Counting())
    assert (await store.create(ctx, new("ConfigMap", generateName="x-"))).name == "x-a"
    assert (await store.create(ctx, new("ConfigMap", generateName="x-"))).name == "x-b"


@pytest.mark.parametrize("large", [False, True])
async def test_eight_generated_names_that_exist_are_a_conflict(
    make_store: MakeStore, ctx: Context, large: bool
) -> None:
    ctx.large = large

    class Stuck(ConfigMaps):
        calls = 0

        def generate_name(self, base: str) -> str:
            self.calls += 1
            return f"{base}same"

    strategy = Stuck()
    store = make_store("ConfigMap", "configmaps", strategy)
    await store.create(ctx, new("ConfigMap", generateName="x-"))
    strategy.calls = 0
    with pytest.raises(StatusError) as rejected:
        await store.create(ctx, new("ConfigMap", generateName="x-"))
    assert strategy.calls == 8
    text = 'configmaps "x-same" already exists, the server was not able to generate a unique name for the object'
    assert (rejected.value.message, rejected.value.retry_after) == (text, 1)


async def test_an_existing_name_is_a_conflict_even_in_a_dry_run(store: Store, ctx: Context, dry: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a"))
    for context in (ctx, dry):
        with pytest.raises(StatusError) as rejected:
            await store.create(context, new("ConfigMap", "a"))
        assert (rejected.value.code, rejected.value.reason) == (409, "AlreadyExists")
        assert rejected.value.message == 'configmaps "a" already exists'
        assert rejected.value.details == {"name": "a", "kind": "configmaps"}


async def test_the_conflict_with_an_object_being_deleted_names_the_deletion(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", finalizers=["example.com/hold"]))
    await store.delete(ctx, "a", {})
    with pytest.raises(StatusError) as rejected:
        await store.create(ctx, new("ConfigMap", "a"))
    assert rejected.value.message == 'object is being deleted: configmaps "a" already exists'


async def test_a_dry_run_answers_without_version_and_stores_nothing(store: Store, dry: Context) -> None:
    entry = await store.create(dry, new("ConfigMap", "a", data={"k": "v"}))
    assert entry.object()["data"] == {"k": "v"}
    assert entry.object()["metadata"]["uid"]
    assert "resourceVersion" not in entry.object()["metadata"]
    with pytest.raises(StatusError):
        await store.get(dry, "a")


async def test_status_and_generation_of_a_new_object_are_the_servers(make_store: MakeStore, ctx: Context) -> None:
    store = make_store("Pod", "pods", Pods())
    obj = (await store.create(ctx, new("Pod", "p", spec={}, status={"phase": "Running"}, generation=9))).peek()
    assert obj["status"] == {"phase": "Pending"}
    assert obj["metadata"]["generation"] == 1


async def test_names_and_finalizers_are_validated_as_the_kind_wants(
    store: Store, make_store: MakeStore, ctx: Context
) -> None:
    with pytest.raises(StatusError) as rejected:
        await store.create(ctx, new("ConfigMap", "Upper", finalizers=["short"]))
    causes = rejected.value.to_status()["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["metadata.name", "metadata.finalizers[0]"]
    widgets = make_store("Widget", "widgets", Widgets(), group="example.com")
    await widgets.create(ctx, new("Widget", "w", finalizers=["short"]))


async def test_admission_sees_the_finished_object_and_can_reject(store: Store, ctx: Context) -> None:
    seen: list[Object] = []

    async def reject(obj: Object) -> None:
        seen.append(obj)
        raise bad_request("no")

    with pytest.raises(StatusError, match="no"):
        await store.create(ctx, new("ConfigMap", generateName="a-"), validate=reject)
    assert seen[0]["metadata"]["name"].startswith("a-")
    assert seen[0]["metadata"]["uid"]
    with pytest.raises(StatusError, match="not found"):
        await store.get(ctx, seen[0]["metadata"]["name"])


async def test_warnings_reach_the_context(store: Store, ctx: Context) -> None:
    await store.create(ctx, new("ConfigMap", "a", data={}))
    assert ctx.warnings == ["data: rather empty"]


async def test_allocations_are_kept_on_success_and_released_on_rejection(make_store: MakeStore, ctx: Context) -> None:
    strategy = Services()
    store = make_store("Service", "services", strategy)
    await store.create(ctx, new("Service", "s"))
    with pytest.raises(StatusError):
        await store.create(ctx, new("Service", "s"))
    with pytest.raises(StatusError):
        await store.create(ctx, new("Service", "Bad"))
    assert strategy.ended == [("s", True), ("s", False), ("Bad", False)]


@pytest.mark.parametrize(
    ("name", "text"), [("a/b", "may not contain '/'"), ("50%", "may not contain '%'"), ("..", "may not be '..'")]
)
async def test_names_that_no_path_can_have_are_rejected(store: Store, ctx: Context, name: str, text: str) -> None:
    with pytest.raises(StatusError) as rejected:
        await store.get(ctx, name)
    assert rejected.value.message == f'Name parameter invalid: "{name}": {text}'


async def test_objects_with_a_lifetime_are_stored_under_a_lease(
    make_store: MakeStore, ctx: Context, backend: SqliteBackend
) -> None:
    store = make_store("Event", "events", Events())
    await store.create(ctx, new("Event", "e"))
    stored = await backend.get("/registry/events/ns/e")
    assert stored is not None
    assert stored.lease
