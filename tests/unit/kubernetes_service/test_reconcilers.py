"""Tests of the addresses of the Service `kubernetes`: those of renewed leases, or a fixed number of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from tetrapod.generic.client.interface import Client
from tetrapod.generic.server.kubernetes_service.leases import PeerLeases
from tetrapod.generic.server.kubernetes_service.objects import KubernetesEndpoints
from tetrapod.generic.server.kubernetes_service.presence import EndpointPresence, may_be_endpoint
from tetrapod.generic.server.kubernetes_service.reconcilers import CountReconciler, LeaseReconciler
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

PORTS = [{"name": "https", "port": 6443, "protocol": "TCP"}]


class Objects:
    """A fake store with one object per resource, which counts writes."""

    def __init__(self) -> None:
        self.stored: dict[str, Object] = {}
        self.writes = 0

    async def get(self, gvr: Any, namespace: str, name: str) -> Object:
        if gvr.resource not in self.stored:
            raise StatusError(404, "NotFound", "not found")
        return self.stored[gvr.resource]

    async def create(self, gvr: Any, namespace: str, obj: Object) -> Object:
        if gvr.resource in self.stored:
            raise StatusError(409, "AlreadyExists", "exists")
        return await self.update(gvr, namespace, obj)

    async def update(self, gvr: Any, namespace: str, obj: Object) -> Object:
        self.writes += 1
        self.stored[gvr.resource] = obj
        return obj

    async def delete(self, gvr: Any, namespace: str, name: str) -> None:
        del self.stored[gvr.resource]

    @property
    def addresses(self) -> list[str]:
        return [a["ip"] for subset in self.stored["endpoints"]["subsets"] for a in subset["addresses"]]

    @property
    def in_slice(self) -> list[str]:
        return [endpoint["addresses"][0] for endpoint in self.stored["endpointslices"]["endpoints"]]


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[Backend]:
    backend = SqliteBackend(tmp_path / "db")
    yield backend
    await backend.close()


def by_lease(objects: Objects, backend: Backend, address: str) -> LeaseReconciler:
    endpoints = KubernetesEndpoints(cast(Client, objects), 6443)
    return LeaseReconciler(endpoints, PeerLeases(backend, "/registry"), address)


async def test_renewed_addresses_are_published_in_order_and_written_once(backend: Backend) -> None:
    objects = Objects()
    second, first = by_lease(objects, backend, "10.0.0.2"), by_lease(objects, backend, "10.0.0.1")
    await second.reconcile()
    await first.reconcile()
    assert objects.addresses == objects.in_slice == ["10.0.0.1", "10.0.0.2"]
    assert objects.stored["endpoints"]["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    before = objects.writes
    await second.reconcile()
    assert objects.writes == before
    await second.remove()
    assert objects.addresses == objects.in_slice == ["10.0.0.1"]
    await first.remove()
    assert objects.stored["endpoints"]["subsets"] == [] and objects.in_slice == []


async def test_addresses_of_dead_servers_are_removed(backend: Backend) -> None:
    objects = Objects()
    leases = PeerLeases(backend, "/registry")
    await leases.renew("10.0.0.9")
    alive = by_lease(objects, backend, "10.0.0.1")
    await alive.reconcile()
    assert objects.addresses == ["10.0.0.1", "10.0.0.9"]
    assert await leases.remove("10.0.0.9")  # as when its time is up
    assert not await leases.remove("10.0.0.9")
    await alive.reconcile()
    assert objects.addresses == objects.in_slice == ["10.0.0.1"]


async def test_changes_by_others_are_reverted(backend: Backend) -> None:
    objects = Objects()
    subsets = [{"addresses": [{"ip": "1.2.3.4"}]}, {"addresses": [{"ip": "1.2.3.5"}]}]
    objects.stored["endpoints"] = {"metadata": {"name": "kubernetes", "labels": {"kept": "yes"}}, "subsets": subsets}
    await by_lease(objects, backend, "10.0.0.1").reconcile()
    assert objects.stored["endpoints"]["subsets"] == [{"addresses": [{"ip": "10.0.0.1"}], "ports": PORTS}]
    assert objects.stored["endpoints"]["metadata"]["labels"]["kept"] == "yes"


async def test_a_slice_changes_its_family(backend: Backend) -> None:
    objects = Objects()
    await by_lease(objects, backend, "10.0.0.1").reconcile()
    await by_lease(objects, backend, "10.0.0.1").remove()
    await by_lease(objects, backend, "fd00::1").reconcile()
    assert objects.stored["endpointslices"]["addressType"] == "IPv6"
    assert objects.addresses == objects.in_slice == ["fd00::1"]


async def test_by_count_the_next_one_in_order_gives_way() -> None:
    objects = Objects()
    endpoints = KubernetesEndpoints(cast(Client, objects), 6443)
    for address in ("10.0.0.1", "10.0.0.3", "10.0.0.2"):
        await CountReconciler(endpoints, address, 2).reconcile()
    assert objects.addresses == ["10.0.0.1", "10.0.0.2"]
    await CountReconciler(endpoints, "10.0.0.1", 2).remove()
    assert objects.addresses == ["10.0.0.2"]


async def test_by_count_servers_with_different_ports_are_listed_together() -> None:
    objects = Objects()
    first, second = (KubernetesEndpoints(cast(Client, objects), port) for port in (6443, 6444))
    await CountReconciler(first, "10.0.0.1", 2).reconcile()
    await CountReconciler(second, "10.0.0.2", 2).reconcile()
    assert objects.addresses == objects.in_slice == ["10.0.0.1", "10.0.0.2"]
    assert objects.stored["endpoints"]["subsets"][0]["ports"] == objects.stored["endpointslices"]["ports"] == PORTS
    before = objects.writes
    await CountReconciler(first, "10.0.0.1", 2).reconcile()
    await CountReconciler(second, "10.0.0.2", 2).reconcile()
    assert objects.writes == before
    await CountReconciler(first, "10.0.0.1", 2).remove()
    assert objects.addresses == objects.in_slice == ["10.0.0.2"]


async def test_the_port_of_listed_servers_is_kept_until_they_are_gone(backend: Backend) -> None:
    objects = Objects()
    first = by_lease(objects, backend, "10.0.0.1")
    endpoints = KubernetesEndpoints(cast(Client, objects), 6444)
    second = LeaseReconciler(endpoints, PeerLeases(backend, "/registry"), "10.0.0.2")
    await first.reconcile()
    await second.reconcile()
    assert objects.stored["endpoints"]["subsets"][0]["ports"] == PORTS
    await first.remove()
    await second.reconcile()
    assert objects.addresses == objects.in_slice == ["10.0.0.2"]
    assert objects.stored["endpoints"]["subsets"][0]["ports"] == [{"name": "https", "port": 6444, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("address", "good"),
    [("10.0.0.1", True), ("127.0.0.1", False), ("::1", False), ("0.0.0.0", False), ("fd00::1", True)],
)
def test_an_endpoint_is_somewhere_others_can_reach(address: str, good: bool) -> None:
    assert may_be_endpoint(address) is good


class Contended(Objects):
    """Objects that another server changes before each of the first `conflicts` updates."""

    def __init__(self, conflicts: int) -> None:
        super().__init__()
        self.conflicts = conflicts

    async def update(self, gvr: Any, namespace: str, obj: Object) -> Object:
        if self.conflicts and gvr.resource in self.stored:
            self.conflicts -= 1
            raise StatusError(409, "Conflict", "the object has been modified")
        return await super().update(gvr, namespace, obj)


@pytest.mark.parametrize(("conflicts", "removed"), [(4, True), (5, False)])
async def test_leaving_is_retried_four_times_and_then_logged(
    conflicts: int, removed: bool, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    objects = Contended(0)
    presence = EndpointPresence(by_lease(objects, backend, "10.0.0.1"))
    await presence.reconcile()
    objects.conflicts = conflicts
    await presence.leave()
    assert (objects.stored["endpoints"]["subsets"] == []) is removed
    assert ("unable to remove endpoints" in caplog.text) is not removed
