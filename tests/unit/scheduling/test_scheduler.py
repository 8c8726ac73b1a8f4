"""Tests of the event loop's fair scheduler, with a clock that the test controls.

A step lasts as long as the requests that start in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.scheduling.scheduler import FairScheduler

T = TypeVar("T")


class Served:
    """Serves requests one after the other, each at a given cost of the loop's time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.scheduler = FairScheduler(
            clock=lambda: self.now, now=lambda: self.now, group_of=lambda flow: str(flow).partition("/")[0]
        )
        self.order: list[str] = []

    async def request(self, flow: str, cost: float = 0.0001) -> None:
        if not self.scheduler.try_start(flow):
            await self.scheduler.wait(flow)
        await run(self.scheduler, flow, self._work(flow, cost))

    async def _work(self, flow: str, cost: float) -> None:
        self.now += cost
        self.order.append(flow)

    def flood(self, count: int, cost: float = 0.0001) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request("flood", cost)) for _ in range(count)]

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.order) < count:  # noqa: ASYNC110  it is steps of the loop that are counted
                await asyncio.sleep(0)


async def run(scheduler: FairScheduler, flow: str, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` as part of a flow. From Python 3.12 on, tasks need a coroutine, and not a generator."""
    return await scheduler.run(flow, work)


async def test_a_new_flow_is_served_before_a_flood() -> None:
    served = Served()
    flood = served.flood(200)
    await served.until_begun(20)
    before, now = len(served.order), served.now
    await asyncio.create_task(served.request("quiet"))
    assert served.order.index("quiet") - before <= 10
    assert served.now - now <= 0.001
    await asyncio.gather(*flood)
    assert len(served.order) == 201


async def test_steps_become_short_where_requests_are_long() -> None:
    served = Served()
    flood = served.flood(100, cost=0.005)
    await served.until_begun(50)
    for _ in range(5):
        before = len(served.order)
        await asyncio.sleep(0)
        assert len(served.order) - before <= 1
    await asyncio.gather(*flood)


async def test_waiting_flows_are_served_equally() -> None:
    served = Served()
    tasks = [asyncio.create_task(served.request(flow)) for flow in ("one",) * 60 + ("two",) * 60]
    await asyncio.gather(*tasks)
    last = served.order[40:100]
    assert abs(last.count("one") - last.count("two")) <= 10


async def test_groups_are_served_equally_however_many_flows_they_have() -> None:
    """The controller manager must keep up with the work that five hundred kubelets make."""
    served = Served()
    nodes = [f"nodes/{number}" for number in range(60)]
    tasks = [asyncio.create_task(served.request(flow)) for flow in (*nodes, *["controllers/manager"] * 60)]
    await asyncio.gather(*tasks)
    last = served.order[40:80]
    assert abs(last.count("controllers/manager") - 20) <= 5


async def test_flows_of_a_group_are_served_equally() -> None:
    served = Served()
    flows = [*["a/one"] * 40, *["a/two"] * 40, *["b/three"] * 80]
    tasks = [asyncio.create_task(served.request(flow)) for flow in flows]
    await asyncio.gather(*tasks)
    last = served.order[60:120]
    assert [abs(last.count(flow) - share) <= 5 for flow, share in (("a/one", 15), ("a/two", 15), ("b/three", 30))] == [
        True
    ] * 3


async def test_a_client_that_disconnects_while_waiting_uses_no_step() -> None:
    served = Served()
    flood = served.flood(100)
    await asyncio.sleep(0)
    for task in flood[20:90]:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    assert len(served.order) == 30
    await served.request("flood")


async def test_a_light_flow_starts_several_requests_while_a_flood_waits() -> None:
    served = Served()
    flood = served.flood(500, cost=0.001)
    await served.until_begun(50)
    before = len(served.order)
    light = [asyncio.create_task(served.request("light")) for _ in range(DEFAULT.light_starts)]
    await asyncio.gather(*light)
    assert len(served.order) - before <= 2 * DEFAULT.light_starts
    await asyncio.gather(*flood)


async def test_a_flow_that_has_used_its_time_waits_for_its_turn() -> None:
    served = Served()
    flood = served.flood(500, cost=0.001)
    await served.until_begun(50)
    busy = [asyncio.create_task(served.request("busy", cost=0.001)) for _ in range(100)]
    await asyncio.gather(*busy)
    second = served.order[-80:]
    assert abs(second.count("busy") - second.count("flood")) <= 10
    await asyncio.gather(*flood)


async def test_a_hundred_users_are_a_flood_too() -> None:
    served = Served()
    tasks = [asyncio.create_task(served.request(f"user-{i}", cost=0.001)) for i in range(100)]
    await asyncio.sleep(0)
    assert len(served.order) <= 20
    await asyncio.gather(*tasks)
    assert len(served.order) == 100


async def test_requests_of_a_single_flow_are_no_contention() -> None:
    now = 100.0
    scheduler = FairScheduler(clock=lambda: 0.0, now=lambda: now)

    def ask(flow: str) -> asyncio.Future[None] | None:
        return None if scheduler.try_start(flow) else scheduler.wait(flow)

    ask("earlier")
    now += 2
    ask("flood")
    now += 2
    waiting = [asked for _ in range(100) if (asked := ask("flood"))]
    assert waiting
    assert not scheduler.contended()
    ask("quiet")
    assert scheduler.contended()
    now += 2
    assert not scheduler.contended()
    await asyncio.gather(*waiting)
    assert not scheduler.contended()


async def test_background_flows_do_not_count_as_contention() -> None:
    """Other services send a few requests a second, and must not shorten the steps of a lone user."""
    now = 100.0
    scheduler = FairScheduler(clock=lambda: 0.0, now=lambda: now, is_background=lambda flow: flow == "service")
    scheduler.try_start("user")
    now += 2
    waiting: list[asyncio.Future[None]] = []
    for _ in range(100):
        flows = (*["user"] * 20, "service")
        waiting += [scheduler.wait(flow) for flow in flows if not scheduler.try_start(flow)]
        now += 0.1
        assert not scheduler.shared()
        assert not scheduler.contended()
    assert waiting
    await asyncio.gather(*waiting)
    scheduler.try_start("other user")
    assert scheduler.shared()


async def test_contention_lasts_for_a_moment_after_the_last_start() -> None:
    """Between two steps of a flood no request is waiting, so contention outlasts the last start by `contended_for`."""
    now = 100.0
    scheduler = FairScheduler(clock=lambda: 0.0, now=lambda: now)
    scheduler.try_start("earlier")
    waiting = [scheduler.wait("flood") for _ in range(100) if not scheduler.try_start("flood")]
    await asyncio.gather(*waiting)
    assert scheduler.contended()
    now += DEFAULT.contended_for
    assert not scheduler.contended()


async def test_steps_are_shorter_during_contention() -> None:
    """A step starts only as many requests as another flow may have to wait for."""
    busy, now = 0.0, 100.0
    scheduler = FairScheduler(clock=lambda: busy, now=lambda: now + busy)

    async def work() -> None:
        nonlocal busy
        busy += DEFAULT.step / 6

    async def request(flow: str) -> None:
        if not scheduler.try_start(flow):
            await scheduler.wait(flow)
        await run(scheduler, flow, work())

    async def begun_in_a_step() -> float:
        before = busy
        await asyncio.sleep(0)
        return busy - before

    async def longest(*flows: str) -> float:
        tasks = [asyncio.create_task(request(flow)) for _ in range(4000 // len(flows)) for flow in flows]
        for _ in range(150):  # until the flows are light no more, and the number of requests in a step has settled
            await asyncio.sleep(0)
        found = max([await begun_in_a_step() for _ in range(10)])
        await asyncio.gather(*tasks)
        return found

    await request("alone")
    now += 10
    assert DEFAULT.shared_step * 1.1 < await longest("alone") < DEFAULT.step * 1.1
    now += 10
    assert await longest("one", "another") < DEFAULT.shared_step * 1.1


async def test_steps_that_had_to_wait_for_a_cpu_say_that_they_are_scarce() -> None:
    cpu = wall = 0.0
    scheduler = FairScheduler(clock=lambda: cpu, now=lambda: wall)

    async def steps(on_cpu: float, by_the_clock: float) -> None:
        nonlocal cpu, wall
        for _ in range(100):
            assert scheduler.try_start("one")
            cpu += on_cpu
            wall += by_the_clock
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await steps(0.0001, 0.000102)
    assert not scheduler.cpu_scarce()
    await steps(0.0001, 0.0002)
    assert scheduler.cpu_scarce()
    await steps(0.0001, 0.0001)
    assert not scheduler.cpu_scarce()


async def test_started_requests_continue_before_new_ones_start() -> None:
    served = Served()
    stored: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def writes() -> str:
        answer = await stored
        served.now += 0.005
        served.order.append("written")
        return answer

    async def request() -> str:
        assert served.scheduler.try_start("flood")
        return await served.scheduler.run("flood", writes())

    writing = asyncio.create_task(request())
    await asyncio.sleep(0)
    flood = served.flood(100, cost=0.005)
    await served.until_begun(20)
    stored.set_result("it")
    before = len(served.order)
    assert await writing == "it"
    assert served.order.index("written") - before <= 3
    await asyncio.gather(*flood)
    assert len(served.order) == 101


async def test_many_started_requests_continue_in_their_order() -> None:
    served = Served()
    committed = asyncio.Event()

    async def writes() -> None:
        await committed.wait()
        served.now += 0.005
        served.order.append("written")

    tasks = [asyncio.create_task(run(served.scheduler, "flood", writes())) for _ in range(50)]
    await asyncio.sleep(0)
    committed.set()
    await served.until_begun(20)
    assert len(served.order) < 25
    before = len(served.order)
    await asyncio.create_task(served.request("quiet"))
    assert served.order.index("quiet") - before <= 2
    await asyncio.gather(*tasks)
    assert served.order.count("written") == 50


async def test_failures_and_cancellation_reach_what_waits() -> None:
    scheduler = FairScheduler(clock=lambda: 0.0)
    seen: list[str] = []
    loop = asyncio.get_running_loop()
    failing: asyncio.Future[None] = loop.create_future()

    async def work(awaited: asyncio.Future[None]) -> str:
        try:
            await awaited
        except OSError:
            seen.append("failed")
            return "told"
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "done"

    task = asyncio.create_task(run(scheduler, "one", work(failing)))
    await asyncio.sleep(0)
    failing.set_exception(OSError())
    assert await task == "told"
    task = asyncio.create_task(run(scheduler, "one", work(loop.create_future())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["failed", "cancelled"]


async def test_without_fair_scheduling_every_request_starts_at_once() -> None:
    scheduler = FairScheduler(FairScheduling(enabled=False))
    assert all(scheduler.try_start("flood") for _ in range(1000))

    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await scheduler.run("flood", work()) == "done"
    assert not scheduler.shared()
    assert not scheduler.contended()
