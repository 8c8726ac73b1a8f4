"""Tests of APIService registration: which objects are created, restored, deleted or left unchanged."""

from __future__ import annotations

from typing import Any, cast

from tetrapod.aggregator.autoregister import AutoRegistration
from tetrapod.aggregator.crd_registration import CRDRegistration
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersion, Object
from unit.aggregator.objects import FakeClient, api_service

GV = GroupVersion("g.example.com", "v1")
NAME = "v1.g.example.com"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"


class World:
    def __init__(self, *existing: Object) -> None:
        self.client = FakeClient()
        self.records = Records()
        for obj in existing:
            self.records.changed(None, obj)
        self.registration = AutoRegistration(cast(Client, self.client), self.records)
        self.registration.remember_start({obj["metadata"]["name"] for obj in existing})

    async def reconcile(self) -> list[tuple[str, str]]:
        self.client.calls.clear()
        await self.registration.reconcile(NAME)
        return [(verb, name) for verb, name, _ in self.client.calls]


def managed(how: str, **more: Any) -> Object:
    labels: dict[str, Any] = {MANAGED: how}
    return api_service(GV.group, **labels, **more)


async def test_a_built_in_group_is_registered_once_per_start() -> None:
    world = World()
    world.registration.want(GV, (1000, 100), always=False)
    assert await world.reconcile() == [("create", NAME)]
    assert await world.reconcile() == []


async def test_a_built_in_group_from_before_is_brought_up_to_date() -> None:
    world = World(managed("onstart", priority=7))
    world.registration.want(GV, (1000, 100), always=False)
    assert await world.reconcile() == [("update/", NAME)]
    assert await world.reconcile() == []


async def test_a_custom_group_is_restored_whenever_it_differs() -> None:
    world = World()
    world.registration.want(GV, (1000, 100), always=True)
    for _ in range(2):
        assert await world.reconcile() == [("create", NAME)]
    world.records.changed(None, managed("true"))
    assert await world.reconcile() == []
    world.records.changed(None, managed("true", priority=5))
    assert await world.reconcile() == [("update/", NAME)]


async def test_a_removed_custom_group_is_unregistered_once_all_definitions_are_known() -> None:
    world = World(managed("true"))
    assert await world.reconcile() == []
    world.registration.complete()
    assert await world.reconcile() == [("delete", NAME)]
    assert world.client.calls[0][2] == {"preconditions": {"uid": f"uid-{NAME}"}}


async def test_apiservices_of_others_are_left_unchanged() -> None:
    world = World(api_service(GV.group, priority=5))
    world.registration.complete()
    assert await world.reconcile() == []
    world.registration.want(GV, (1000, 100), always=True)
    assert await world.reconcile() == []


def crd(name: str, **versions: bool) -> Object:
    listed = [{"name": v, "served": served} for v, served in versions.items()]
    return {"metadata": {"name": name}, "spec": {"group": GV.group, "versions": listed}}


async def test_a_version_stays_registered_while_one_definition_serves_it() -> None:
    world = World()
    crds = CRDRegistration(cast(Client, world.client), world.registration)
    first, second = crd("a.g", v1=True, v2=False), crd("b.g", v1=True)
    crds.changed(None, first)
    crds.changed(None, second)
    assert await world.reconcile() == [("create", NAME)]
    crds.changed(first, None)
    assert await world.reconcile() == [("create", NAME)]
    unserved = crd("b.g", v1=False)
    crds.changed(second, unserved)
    assert await world.reconcile() == []
