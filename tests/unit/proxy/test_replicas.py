"""Tests of the choice of a service's replica, by DNS results and readiness probes; there is always a replica to try."""

from __future__ import annotations

import asyncio
from collections import Counter

from support.virtual_time import run
from tetrapod.generic.proxy.replicas import Address, Replicas


class World:
    """A fake of the network: DNS results, ready replicas, and the replicas whose connections were closed."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names
        self.ready: set[str] = set()
        self.left: list[str] = []
        self.probed: Counter[str] = Counter()

    async def look_up(self, host: str, port: int) -> list[str]:
        if host not in self.names:
            raise OSError("no such host")
        return self.names[host]

    async def probe(self, address: Address) -> bool:
        self.probed[address.host] += 1
        return address.host in self.ready

    def replicas(self, *hosts: str) -> Replicas:
        return Replicas(
            "core", [(host, 6443) for host in hosts], lambda address: self.left.append(address.host), self.look_up
        )


async def order(replicas: Replicas) -> list[str]:
    return [address.host for address in await replicas.candidates()]


def test_requests_alternate_between_all_addresses_of_all_names() -> None:
    async def scenario() -> None:
        world = World(core=["10.0.0.1", "10.0.0.2"], other=["10.0.0.3"])
        world.ready = {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
        replicas = world.replicas("core", "other")
        following = asyncio.create_task(replicas.follow(world.probe))
        await asyncio.sleep(2)
        firsts = Counter([(await order(replicas))[0] for _ in range(30)])
        assert set(firsts.values()) == {10} and len(firsts) == 3
        assert {address.name for address in await replicas.candidates()} == {"core", "other"}
        following.cancel()

    run(scenario())


def test_unready_replicas_are_tried_last_and_drained() -> None:
    async def scenario() -> None:
        world = World(core=["10.0.0.1", "10.0.0.2"])
        world.ready = {"10.0.0.1", "10.0.0.2"}
        replicas = world.replicas("core")
        following = asyncio.create_task(replicas.follow(world.probe))
        await asyncio.sleep(2)
        world.ready = {"10.0.0.2"}
        await asyncio.sleep(1.5)
        assert [await order(replicas) for _ in range(2)] == [["10.0.0.2", "10.0.0.1"]] * 2
        assert world.left == ["10.0.0.1"]
        world.ready = set()
        await asyncio.sleep(1.5)
        assert sorted(await order(replicas)) == ["10.0.0.1", "10.0.0.2"], (
            "where none is ready, one may answer all the same"
        )
        world.ready = {"10.0.0.1"}
        await asyncio.sleep(1.5)
        assert (await order(replicas))[0] == "10.0.0.1"
        following.cancel()

    run(scenario())


def test_a_new_replica_waits_until_it_is_ready_and_a_gone_one_is_forgotten() -> None:
    async def scenario() -> None:
        world = World(core=["10.0.0.1"])
        world.ready = {"10.0.0.1"}
        replicas = world.replicas("core")
        following = asyncio.create_task(replicas.follow(world.probe))
        await asyncio.sleep(10)
        assert not world.probed, "of one there is no choice"
        world.names["core"] = ["10.0.0.1", "10.0.0.2"]
        await asyncio.sleep(7)
        assert (await order(replicas))[0] == (await order(replicas))[0] == "10.0.0.1"
        world.ready.add("10.0.0.2")
        await asyncio.sleep(1.5)
        assert {(await order(replicas))[0] for _ in range(2)} == {"10.0.0.1", "10.0.0.2"}
        world.names["core"] = ["10.0.0.2"]
        await asyncio.sleep(7)
        assert await order(replicas) == ["10.0.0.2"]
        assert world.left == ["10.0.0.1"]
        del world.names["core"]
        await asyncio.sleep(7)
        assert await order(replicas) == ["10.0.0.2"], "a name server that is away changes nothing"
        following.cancel()

    run(scenario())


def test_a_rejection_counts_at_once_until_the_next_probe() -> None:
    async def scenario() -> None:
        world = World(core=["10.0.0.1", "10.0.0.2"])
        world.ready = {"10.0.0.1", "10.0.0.2"}
        replicas = world.replicas("core")
        following = asyncio.create_task(replicas.follow(world.probe))
        await asyncio.sleep(2.5)
        replicas.mark_unavailable(next(a for a in await replicas.candidates() if a.host == "10.0.0.1"))
        assert [(await order(replicas))[0] for _ in range(4)] == ["10.0.0.2"] * 4
        await asyncio.sleep(1)
        assert {(await order(replicas))[0] for _ in range(4)} == {"10.0.0.1", "10.0.0.2"}
        following.cancel()

    run(scenario())


def test_the_first_request_waits_only_for_dns() -> None:
    async def scenario() -> None:
        world = World(core=["10.0.0.1"])
        assert await order(world.replicas("core")) == ["10.0.0.1"]
        assert await order(world.replicas("nowhere")) == []

    run(scenario())
