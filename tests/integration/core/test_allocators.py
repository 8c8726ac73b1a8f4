"""Allocation of addresses and ports of Services: from every ready network, only once, and released if they leaked."""

from __future__ import annotations

import asyncio
import functools
from ipaddress import ip_network
from typing import Any

import pytest

from integration.core.conftest import NS, Core, v1
from integration.core.test_controllers import ADDRESSES, CIDRS, present, running
from support.waiting import eventually
from tetrapod.core.allocators.cluster_ips import ClusterIPs, RangeFullError
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.allocators.repair_addresses import SERVICES, AddressRepair
from tetrapod.core.allocators.repair_ports import PortRepair, node_ports
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource, GroupVersionResource, Object

EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")
FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family"
READY = {"type": "Ready", "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def allocator(core: Core, *networks: str) -> ClusterIPs:
    return ClusterIPs([ip_network(network) for network in networks], core.client)


async def cidr(core: Core, name: str, *networks: str, ready: bool = True) -> None:
    await core.client.create(CIDRS, "", {"metadata": {"name": name}, "spec": {"cidrs": networks}})
    status = {"conditions": [{**READY, "status": str(ready)}]}
    await core.client.patch(CIDRS, "", name, {"status": status}, subresource="status")


async def service(core: Core, name: str, **spec: Any) -> Object:
    return await core.create("services", "Service", name, spec={"ports": [{"port": 80}], **spec})


async def reasons(core: Core) -> set[tuple[str, str]]:
    """Return the reasons of events with the names of their objects."""
    return {(e["reason"], e["regarding"]["name"]) for e in (await core.client.list(EVENTS))["items"]}


async def test_addresses_come_from_every_network_that_is_ready(core: Core) -> None:
    addresses = allocator(core, "10.0.0.0/30")
    meta: Object = {"metadata": {"namespace": NS, "name": "s"}}
    async with running(addresses.service_cidrs):  # type: ignore[arg-type]
        await cidr(core, "kubernetes", "10.0.0.0/30")
        await cidr(core, "more", "10.77.0.0/30")
        await cidr(core, "later", "10.78.0.0/30", ready=False)

        async def networks() -> set[str]:
            return {str(network) for network in addresses.networks()}

        await eventually(networks, lambda found: found == {"10.0.0.0/30", "10.77.0.0/30"})
        taken = [await addresses.take_any("IPv4", meta, False) for _ in range(4)]
        assert sorted(taken) == ["10.0.0.1", "10.0.0.2", "10.77.0.1", "10.77.0.2"]
        with pytest.raises(Exception, match="range is full"):
            await addresses.take_any("IPv4", meta, False)
        with pytest.raises(Exception, match="does not match the current range"):
            await addresses.take("10.78.0.1", meta, False)
        await core.client.delete(CIDRS, "", "more")
        await eventually(networks, lambda found: found == {"10.0.0.0/30"})


async def test_each_family_has_its_own_networks(core: Core) -> None:
    addresses = allocator(core, "10.0.0.0/29", "2001:db8::/125")
    meta: Object = {"metadata": {"namespace": NS, "name": "s"}}
    async with running(addresses.service_cidrs, addresses.ip_addresses):  # type: ignore[arg-type]
        await cidr(core, "kubernetes", "10.0.0.0/29", "2001:db8::/125")
        await cidr(core, "too-wide", "2001:db8:1::/63")
        without_condition = {"metadata": {"name": "new"}, "spec": {"cidrs": ["2001:db8:2::/126", "10.2.0.0/30"]}}
        await core.client.create(CIDRS, "", without_condition)

        async def networks() -> list[set[str]]:
            return [{str(network) for network in addresses.networks(family)} for family in ("IPv4", "IPv6")]

        wanted = [{"10.0.0.0/29", "10.2.0.0/30"}, {"2001:db8::/125", "2001:db8:2::/126"}]
        await eventually(networks, lambda found: found == wanted)
        taken = [await addresses.take_any("IPv6", meta, False) for _ in range(7 + 3)]
        assert sorted(taken) == sorted(
            [f"2001:db8::{i}" for i in range(1, 8)] + [f"2001:db8:2::{i}" for i in range(1, 4)]
        )
        with pytest.raises(RangeFullError):
            await addresses.take_any("IPv6", meta, False)
        await addresses.take("10.0.0.6", meta, False)
        await addresses.release("2001:DB8::0007")
        assert await addresses.take_any("IPv6", meta, False) == "2001:db8::7"
        await eventually(
            lambda: present(core, ADDRESSES, "", "2001:db8::7"),
            lambda found: found is not None and found["metadata"]["labels"][FAMILY_LABEL] == "IPv6",
        )


async def test_addresses_of_both_families_are_repaired(core: Core) -> None:
    addresses = allocator(core, "10.0.0.0/24", "2001:db8::/112")
    services = Informer(core.client, SERVICES)
    await cidr(core, "kubernetes", "10.0.0.0/24", "2001:db8::/112")
    stores = core.service.server.stores[GroupResource("", "services")]
    for name, ips in (("both", ["10.0.0.9", "2001:DB8::9"]), ("invalid", ["10.0.0.300"]), ("out", ["2001:db8:5::1"])):
        metadata = {"name": name, "namespace": NS, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        spec = {"type": "ClusterIP", "clusterIP": ips[0], "clusterIPs": ips, "ipFamilies": ["IPv4"]}
        stored = {"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec}
        await stores.storage.create(f"{NS}/{name}", stored)
    repair = AddressRepair(core.client, addresses, services)
    async with running(addresses.service_cidrs, addresses.ip_addresses, services, repair):  # type: ignore[arg-type]
        for address, family in (("10.0.0.9", "IPv4"), ("2001:db8::9", "IPv6")):
            created = await eventually(functools.partial(present, core, ADDRESSES, "", address))
            assert created is not None
            assert created["spec"]["parentRef"]["name"] == "both"
            assert created["metadata"]["labels"][FAMILY_LABEL] == family
        wanted = {("ClusterIPNotAllocated", "both"), ("ClusterIPNotValid", "invalid"), ("ClusterIPOutOfRange", "out")}
        await eventually(lambda: reasons(core), lambda found: found == wanted)


async def test_address_that_a_service_has_lost_is_not_repaired(core: Core) -> None:
    """The informer of services has not seen the deletion yet. A second service shows that the first was examined."""
    addresses = allocator(core, "10.0.0.0/24")
    services = Informer(core.client, SERVICES)
    await cidr(core, "kubernetes", "10.0.0.0/24")
    ip = (await service(core, "other"))["spec"]["clusterIP"]
    await core.client.delete(ADDRESSES, "", ip)
    repair = AddressRepair(core.client, addresses, services)
    async with running(addresses.service_cidrs, addresses.ip_addresses, services, repair):  # type: ignore[arg-type]
        await eventually(lambda: present(core, ADDRESSES, "", ip))
        spec = {"type": "ClusterIP", "clusterIP": "10.0.0.10", "clusterIPs": ["10.0.0.10"]}
        services.objects[NS, "deleted"] = {"metadata": {"namespace": NS, "name": "deleted"}, "spec": spec}
        await repair.sync_service((NS, "deleted"))
        assert await present(core, ADDRESSES, "", "10.0.0.10") is None
        assert await reasons(core) == {("ClusterIPNotAllocated", "other")}


async def test_addresses_are_repaired(core: Core) -> None:
    addresses = allocator(core, "10.0.0.0/24")
    services = Informer(core.client, SERVICES)
    await cidr(core, "kubernetes", "10.0.0.0/24")
    lost, wrong = [(await service(core, name))["spec"]["clusterIP"] for name in ("lost", "wrong")]
    await core.client.delete(ADDRESSES, "", lost)
    await core.client.patch(ADDRESSES, "", wrong, {"metadata": {"labels": None}})
    parent = {"resource": "services", "namespace": NS, "name": "nobody"}
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}
    for address in ("10.0.0.10", "10.0.0.11"):  # Services get addresses from 10.0.0.17 on
        body = {
            "metadata": {"name": address, "labels": labels if address.endswith("0") else {}},
            "spec": {"parentRef": parent},
        }
        await core.client.create(ADDRESSES, "", body)
    repair = AddressRepair(core.client, addresses, services, create_grace=1)
    async with running(addresses.service_cidrs, addresses.ip_addresses, services, repair):  # type: ignore[arg-type]
        found = await eventually(lambda: present(core, ADDRESSES, "", lost))
        assert found is not None
        assert found["spec"]["parentRef"] == {"resource": "services", "namespace": NS, "name": "lost"}
        await eventually(
            lambda: present(core, ADDRESSES, "", wrong),
            lambda a: a is not None and a["metadata"].get("labels") == labels,
        )
        await eventually(lambda: present(core, ADDRESSES, "", "10.0.0.10"), lambda a: a is None)
        assert await present(core, ADDRESSES, "", "10.0.0.11"), "it is somebody else's"
        expected = {("ClusterIPNotAllocated", "lost"), ("IPAddressNotAllocated", "10.0.0.10")}
        await eventually(lambda: reasons(core), lambda found: found == expected)


async def test_an_address_is_not_leaked_right_after_its_service_is_deleted(core: Core) -> None:
    """It is released a moment later. A second leaked address, examined after it, shows that it has been examined."""
    addresses = allocator(core, "10.0.0.0/24")
    services = Informer(core.client, SERVICES)
    await cidr(core, "kubernetes", "10.0.0.0/24")
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}

    async def hold(address: str, service: str) -> None:
        parent = {"resource": "services", "namespace": NS, "name": service}
        await core.client.create(
            ADDRESSES, "", {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}}
        )

    repair = AddressRepair(core.client, addresses, services, create_grace=-1)
    async with running(addresses.service_cidrs, addresses.ip_addresses, services, repair):  # type: ignore[arg-type]
        await services.synced.wait()
        spec = {"type": "ClusterIP", "clusterIP": "10.0.0.10", "clusterIPs": ["10.0.0.10"]}
        going = services.objects[NS, "going"] = {"metadata": {"namespace": NS, "name": "going"}, "spec": spec}
        await hold("10.0.0.10", "going")
        await hold("10.0.0.11", "nobody")
        await eventually(lambda: present(core, ADDRESSES, "", "10.0.0.11"), lambda found: found is None)
        del services.objects[NS, "going"]
        for handler in services.handlers:
            handler(going, None)
        await hold("10.0.0.202", "nobody")
        await eventually(lambda: present(core, ADDRESSES, "", "10.0.0.202"), lambda found: found is None)
        assert await present(core, ADDRESSES, "", "10.0.0.10")


async def test_an_address_outside_all_networks_is_reported(core: Core) -> None:
    addresses = allocator(core, "10.0.0.0/24")
    services = Informer(core.client, SERVICES)
    await service(core, "s", clusterIP="10.0.0.9")
    await cidr(core, "kubernetes", "10.5.0.0/24")
    repair = AddressRepair(core.client, addresses, services)
    async with running(addresses.service_cidrs, addresses.ip_addresses, services, repair):  # type: ignore[arg-type]
        await eventually(lambda: reasons(core), lambda found: found == {("ClusterIPOutOfRange", "s")})


async def test_node_ports_are_repaired(core: Core, storages: StorageFactory) -> None:
    ports = NodePorts("30000-32767", storages)
    port = (await service(core, "s", type="NodePort"))["spec"]["ports"][0]["nodePort"]
    leaked = await ports.take_any()
    await ports.correct(set(), {port})
    repair = PortRepair(core.client, ports)
    for look in range(4):
        await repair.repair()
        assert await ports.taken() == ({port, leaked} if look < 3 else {port})
    assert await reasons(core) == {("PortNotAllocated", "s")}


async def test_ports_of_a_former_range_stay_allocated(storages: StorageFactory) -> None:
    await NodePorts("30000-30099", storages).take(30050)
    for ports in (NodePorts("30040-30199", storages), NodePorts("29000-31000", storages)):
        assert await ports.taken() == {30050}
        await ports.take_any()
        await ports.correct(set(), await ports.taken() - {30050})
    assert await NodePorts("30060-30070", storages).taken() == set()


def test_a_port_with_several_protocols_is_allocated_once() -> None:
    ports = [
        {"nodePort": 30001, "protocol": "TCP"},
        {"nodePort": 30001, "protocol": "UDP"},
        {"nodePort": 30002, "protocol": "TCP"},
    ]
    assert list(node_ports({"spec": {"ports": ports, "healthCheckNodePort": 30003}})) == [30001, 30002, 30003]


async def test_concurrent_allocations_are_unique(core: Core) -> None:
    made = await asyncio.gather(*(service(core, f"s{i}", type="NodePort") for i in range(60)))
    assert len({s["spec"]["clusterIP"] for s in made}) == len({s["spec"]["ports"][0]["nodePort"] for s in made}) == 60
    await asyncio.gather(*(core.client.delete(v1("services"), NS, s["metadata"]["name"]) for s in made))
    assert not (await core.client.list(ADDRESSES))["items"]
