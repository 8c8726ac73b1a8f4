"""Writes: comparisons, preconditions, retries, and no write if nothing changes."""

from __future__ import annotations

import asyncio

import pytest

from integration.storage.objects import PODS, create, pod, reached, setting
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher import Cacher
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyExists, KeyNotFound, PreconditionFailed
from tetrapod.generic.storage.writes import Preconditions, Updated
from tetrapod.machinery.gvk import Object


async def test_create_of_what_is_there_is_rejected(pods: Cacher) -> None:
    await create(pods, "a/x")
    with pytest.raises(KeyExists):
        await create(pods, "a/x")


async def test_update_of_what_is_not_there_is_rejected_unless_allowed(pods: Cacher) -> None:
    with pytest.raises(KeyNotFound):
        await pods.guaranteed_update("a/x", setting(n="1"))

    async def make(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is None and entry is None
        return Updated(pod("a", "x"))

    made = await pods.guaranteed_update("a/x", make, allow_absent=True)
    assert (await pods.get("a/x")) is not None
    assert made.name == "x"


async def test_all_updates_at_the_same_time_take_effect(pods: Cacher) -> None:
    await create(pods, "a/x", n="0")

    async def increment(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None
        await asyncio.sleep(0)
        obj["metadata"]["labels"]["n"] = str(int(obj["metadata"]["labels"]["n"]) + 1)
        return Updated(obj)

    await asyncio.gather(*(pods.guaranteed_update("a/x", increment) for _ in range(10)))
    entry = await pods.get("a/x")
    assert entry is not None
    assert entry.labels["n"] == "10"


async def test_updates_do_not_wait_for_the_admission_of_another_one(pods: Cacher) -> None:
    await create(pods, "a/x", n="0")
    others = asyncio.Event()

    async def admitted_late(obj: Object | None, entry: Entry | None) -> Updated | None:
        await others.wait()
        return await setting(late="1")(obj, entry)

    async with asyncio.TaskGroup() as group:
        group.create_task(pods.guaranteed_update("a/x", setting(n="1")))
        late = group.create_task(pods.guaranteed_update("a/x", admitted_late))
        rest = [group.create_task(pods.guaranteed_update("a/x", setting(**{f"n{i}": "1"}))) for i in range(5)]
        await asyncio.gather(*rest)
        assert not late.done()
        others.set()
    entry = await pods.get("a/x")
    assert entry is not None
    assert entry.labels == {"n": "1", "late": "1", **{f"n{i}": "1" for i in range(5)}}


async def test_an_update_that_changes_nothing_writes_nothing(pods: Cacher) -> None:
    first = await create(pods, "a/x", n="1")

    async def reordered(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None
        obj["metadata"] = dict(reversed(obj["metadata"].items()))
        return Updated(dict(reversed(obj.items())))

    async def nothing(obj: Object | None, entry: Entry | None) -> None:
        return None

    for unchanged in (setting(n="1"), reordered, nothing):
        assert (await pods.guaranteed_update("a/x", unchanged)).revision == first.revision


async def test_a_rejection_is_of_the_present_state(pods: Cacher, backend: Backend, root: str) -> None:
    """The cache may lag behind another process, so its content must not cause a rejection."""
    entry = await create(pods, "a/x", n="0")
    await reached(pods, entry.revision)
    seen: list[str] = []

    async def only_if_one(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None and entry is not None
        seen.append(entry.labels["n"])
        if entry.labels["n"] != "1":
            if len(seen) == 1:
                other = Cacher(backend, PODS, root=root)
                await other.guaranteed_update("a/x", setting(n="1"))
                await other.close()
            raise PermissionError
        obj["metadata"]["labels"]["n"] = "2"
        return Updated(obj)

    updated = await pods.guaranteed_update("a/x", only_if_one)
    assert (updated.labels["n"], seen) == ("2", ["0", "1"])
    with pytest.raises(PermissionError):
        await pods.guaranteed_update("a/x", only_if_one)


async def test_preconditions_hold_for_updates_and_deletions(pods: Cacher) -> None:
    entry = await create(pods, "a/x")
    uid = entry.object()["metadata"]["uid"]
    text = f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    with pytest.raises(PreconditionFailed) as updated:
        await pods.guaranteed_update("a/x", setting(n="1"), preconditions=Preconditions(uid="other"))
    with pytest.raises(PreconditionFailed) as deleted:
        await pods.delete("a/x", preconditions=Preconditions(uid="other"))
    assert str(updated.value) == str(deleted.value) == text
    text = f"Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: {entry.revision}"
    with pytest.raises(PreconditionFailed) as stale:
        await pods.delete("a/x", preconditions=Preconditions(resource_version="1"))
    assert str(stale.value) == text
    await pods.delete("a/x", preconditions=Preconditions(uid=uid, resource_version=str(entry.revision)))
    with pytest.raises(KeyNotFound):
        await pods.delete("a/x")


async def test_a_deletion_shows_what_was_deleted_at_the_revision_of_the_deletion(pods: Cacher) -> None:
    entry = await create(pods, "a/x", n="1")
    deleted = await pods.delete("a/x")
    assert deleted.revision > entry.revision
    assert deleted.object()["metadata"]["resourceVersion"] == str(deleted.revision)
    assert deleted.labels == {"n": "1"}


async def test_a_deletion_can_be_rejected(pods: Cacher) -> None:
    await create(pods, "a/x")

    async def reject(entry: Entry) -> None:
        raise PermissionError(entry.name)

    with pytest.raises(PermissionError, match="x"):
        await pods.delete("a/x", validate=reject)
    assert await pods.get("a/x") is not None


async def test_an_update_keeps_or_ends_the_expiry(pods: Cacher, backend: Backend, root: str) -> None:
    for name in ("kept", "ended"):
        await pods.create(f"a/{name}", pod("a", name), ttl=600)

    async def end(obj: Object | None, entry: Entry | None) -> Updated:
        assert obj is not None
        obj["spec"]["n"] = 1
        return Updated(obj, ttl=0)

    await pods.guaranteed_update("a/kept", setting(n="1"))
    await pods.guaranteed_update("a/ended", end)
    kept, ended = await backend.get(f"{root}/pods/a/kept"), await backend.get(f"{root}/pods/a/ended")
    assert kept is not None and ended is not None
    assert kept.lease != 0
    assert ended.lease == 0


async def test_short_lived_objects_share_a_lease(pods: Cacher, backend: Backend, root: str) -> None:
    for number in range(3):
        await pods.create(f"a/{number}", pod("a", str(number)), ttl=3600)
    kvs = (await backend.range(f"{root}/pods/", f"{root}/pods0")).kvs
    assert len({kv.lease for kv in kvs}) == 1
    assert kvs[0].lease != 0
