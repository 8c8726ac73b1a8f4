"""Tests of the lease by which an API server announces its identity."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.kubernetes_service.identity import IdentityLease
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import format_micro, now


class Leases:
    def __init__(self, *objects: Object) -> None:
        self.objects = {obj["metadata"]["name"]: obj for obj in objects}

    async def get(self, gvr: Any, namespace: str, name: str) -> Object:
        if name not in self.objects:
            raise StatusError(404, "NotFound", "not found")
        return self.objects[name]

    async def create(self, gvr: Any, namespace: str, obj: Object) -> Object:
        self.objects[obj["metadata"]["name"]] = obj
        return obj

    async def update(self, gvr: Any, namespace: str, obj: Object) -> Object:
        return await self.create(gvr, namespace, obj)

    async def list(self, gvr: Any, namespace: str, **query: str) -> Object:
        return {"items": list(self.objects.values())}

    async def delete(self, gvr: Any, namespace: str, name: str, options: Object) -> None:
        assert options["preconditions"]["uid"] == "u"
        del self.objects[name]


def held(name: str, seconds_ago: float) -> Object:
    spec = {"renewTime": format_micro(now() - timedelta(seconds=seconds_ago)), "leaseDurationSeconds": 3600}
    return {"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "spec": spec}


def identity(leases: Leases, host: str = "vm") -> IdentityLease:
    return IdentityLease(cast(Client, leases), host, "10.1.1.1:6443", asyncio.Event())


async def test_a_restarted_server_reuses_its_lease() -> None:
    leases = Leases()
    first, second = identity(leases), identity(leases)
    await first.renew()
    holder = leases.objects[first.name]["spec"]["holderIdentity"]
    await second.renew()
    assert list(leases.objects) == [first.name]
    assert leases.objects[first.name]["spec"]["holderIdentity"] != holder
    assert leases.objects[first.name]["metadata"]["labels"]["kubernetes.io/hostname"] == "vm"


async def test_hosts_have_leases_of_their_own() -> None:
    assert identity(Leases(), "other").name != identity(Leases(), "vm").name


async def test_only_expired_leases_are_deleted() -> None:
    leases = Leases(held("fresh", 3000), held("old", 4000))
    await identity(leases).collect()
    assert list(leases.objects) == ["fresh"]


class Rejecting(Leases):
    async def create(self, gvr: Any, namespace: str, obj: Object) -> Object:
        raise StatusError(403, "Forbidden", "a webhook does not like it")


async def test_a_lease_that_admission_rejects_keeps_no_server_from_starting() -> None:
    lifecycle, namespaces = Lifecycle(), asyncio.Event()
    namespaces.set()
    IdentityLease(cast(Client, Rejecting()), "vm", "10.1.1.1:6443", namespaces).register(lifecycle)
    await asyncio.wait_for(lifecycle.start(), 10)
    await lifecycle.stop()
