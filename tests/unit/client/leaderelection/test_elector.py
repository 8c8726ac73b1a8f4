"""Tests of leader election: which replica leads, for how long, and that no other replica works
(client-go/tools/leaderelection).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from support.virtual_time import VirtualLoop, run
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.elector import ElectionConfig, Elector
from tetrapod.generic.client.leaderelection.lock import LeaseLock
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class Store:
    """Leases and events with resource versions.

    `away` names the replicas that cannot reach it, `hanging` those whose requests hang.
    """

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.notes: list[str] = []
        self.away: set[str] = set()
        self.hanging: set[str] = set()

    async def reach(self, who: str) -> None:
        await asyncio.sleep(0.01)
        if who in self.hanging:
            await asyncio.Event().wait()
        if who in self.away:
            raise Unavailable("no route to host")

    def write(self, obj: Object) -> Object:
        self.version += 1
        self.lease = {**obj, "metadata": {**obj["metadata"], "uid": "u", "resourceVersion": str(self.version)}}
        return self.lease

    @property
    def spec(self) -> Object:
        assert self.lease is not None
        spec: Object = self.lease["spec"]
        return spec


class StoreClient:
    def __init__(self, store: Store, who: str) -> None:
        self.store, self.who = store, who

    async def get(self, gvr: Any, namespace: str, name: str) -> Object:
        await self.store.reach(self.who)
        if self.store.lease is None:
            raise StatusError(404, "NotFound", "not found")
        return self.store.lease

    async def create(self, gvr: Any, namespace: str, obj: Object) -> Object:
        await self.store.reach(self.who)
        if gvr.resource == "events":
            self.store.notes.append(obj["note"])
            return obj
        if self.store.lease is not None:
            raise StatusError(409, "AlreadyExists", "exists")
        return self.store.write(obj)

    async def update(self, gvr: Any, namespace: str, obj: Object) -> Object:
        await self.store.reach(self.who)
        assert self.store.lease is not None
        if obj["metadata"]["resourceVersion"] != self.store.lease["metadata"]["resourceVersion"]:
            raise StatusError(409, "Conflict", "conflict")
        return self.store.write(obj)


class Replica:
    working: set[str] = set()

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        config = ElectionConfig("test")
        lock = LeaseLock(cast(Client, StoreClient(store, name)), "kube-system", "test", identity=name)
        self.elector = Elector(lock, config, asyncio.get_running_loop().time)
        self.terms = 0
        self.works_since = 0.0

    async def work(self) -> None:
        self.terms += 1
        Replica.working.add(self.name)
        assert len(Replica.working) == 1, "two at work at once"
        try:
            await asyncio.Event().wait()
        finally:
            Replica.working.discard(self.name)


@contextlib.asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(replica.elector.run(replica.work)) for replica in replicas]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        Replica.working = set()


async def after(seconds: float) -> set[str]:
    await asyncio.sleep(seconds)
    return Replica.working


def test_only_one_of_many_candidates_leads() -> None:
    async def scenario() -> None:
        store = Store()
        replicas = [Replica(store, f"r{i}") for i in range(4)]
        async with running(*replicas):
            for _ in range(60):
                assert len(await after(5)) == 1
        assert sum(replica.terms for replica in replicas) == 1
        assert store.notes[0].endswith(" became leader")

    run(scenario())


def test_after_a_clean_stop_the_next_one_begins_at_once() -> None:
    async def scenario() -> None:
        store = Store()
        first, second = Replica(store, "first"), Replica(store, "second")
        async with running(first) as (task,):
            assert await after(1) == {"first"}
            async with running(second):
                await after(10)
                task.cancel()
                assert "first" not in await after(0.5)
                assert await after(2 * 2.2) == {"second"}, "no longer than one look of the next one"
        assert "first stopped leading" in store.notes

    run(scenario())


def test_a_dead_leader_is_replaced_when_its_lease_expires() -> None:
    async def scenario() -> None:
        store = Store()
        first, second = Replica(store, "first"), Replica(store, "second")
        async with running(first, second):
            assert await after(1) == {"first"}
            store.hanging = {"first"}
            assert await after(8.5) == {"first"}, "it may still renew"
            assert await after(2.2) == set(), "it has given up, before anybody else begins"
            assert await after(15) == {"second"}
            assert store.spec["leaseTransitions"] == 1
            store.hanging = set()
            assert await after(60) == {"second"}
            assert not first.elector.leading

    run(scenario())


@pytest.mark.parametrize("how", ["away", "hanging"])
def test_no_candidate_leads_without_the_store(how: str) -> None:
    async def scenario() -> None:
        store = Store()
        replicas = [Replica(store, name) for name in ("a", "b")]
        async with running(*replicas):
            assert await after(1) == {"a"}
            setattr(store, how, {"a", "b"})
            assert await after(13) == set()
            setattr(store, how, set())
            assert len(await after(20)) == 1

    run(scenario())


def test_a_leader_that_slept_too_long_does_no_more_work() -> None:
    async def scenario() -> None:
        store = Store()
        first, second = Replica(store, "first"), Replica(store, "second")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with running(first):
            assert await after(1) == {"first"}
            loop.skip(30)
            Replica.working.discard("first")  # the other replicas see a suspended process
            async with running(second):
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert await after(1) <= {"second", "first"}
                assert len(await after(30)) == 1

    run(scenario())


def test_a_leader_that_lost_its_lease_stops_at_the_next_renewal() -> None:
    async def scenario() -> None:
        store = Store()
        first = Replica(store, "first")
        async with running(first):
            assert await after(1) == {"first"}
            assert store.lease is not None
            store.write({**store.lease, "spec": {**store.spec, "holderIdentity": "thief"}})
            assert await after(2.5) == set()

    run(scenario())


def test_work_that_fails_gives_the_lease_to_the_next_one() -> None:
    async def scenario() -> None:
        store = Store()
        failing, second = Replica(store, "failing"), Replica(store, "second")

        async def fail() -> None:
            await asyncio.sleep(1)
            raise RuntimeError("cannot work")

        task = asyncio.create_task(failing.elector.run(fail))
        try:
            async with running(second):
                await after(60)
                assert second.terms
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(scenario())


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"lease_duration": 10.0}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 9.0}, "renewDeadline must be greater than retryPeriod\\*JitterFactor"),
        ({"retry_period": 0.0}, "retryPeriod must be greater than zero"),
    ],
)
def test_settings_under_which_a_leader_could_outlive_its_lease_are_rejected(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        ElectionConfig("test", **settings)
