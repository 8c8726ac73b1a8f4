"""Promises of turns on the event loop, with a clock of the test's own: a step takes as long as the requests that begin in it."""

from __future__ import annotations

import asyncio

import pytest

from tetrapod.generic.flowcontrol.turns import CROWD, SHORT, STEP, Turns


class Served:
    """Serves requests in turn, each at the cost of so much of the loop's time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = Turns(lambda: self.now)
        self.order: list[str] = []

    async def request(self, flow: str, cost: float = 0.0001) -> None:
        if not self.turns.taken(flow):
            await self.turns.wait(flow)
        self.now += cost
        self.order.append(flow)

    def flood(self, count: int, cost: float = 0.0001) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request("flood", cost)) for _ in range(count)]

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.order) < count:  # noqa: ASYNC110  it is steps of the loop that are counted
                await asyncio.sleep(0)


async def test_who_comes_into_a_flood_is_served_before_it() -> None:
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


async def test_flows_that_wait_take_turns() -> None:
    served = Served()
    tasks = [asyncio.create_task(served.request(flow)) for flow in ("one",) * 60 + ("two",) * 60]
    await asyncio.gather(*tasks)
    last = served.order[40:100]
    assert abs(last.count("one") - last.count("two")) <= 10


async def test_who_goes_while_waiting_costs_nobody_a_turn() -> None:
    served = Served()
    flood = served.flood(100)
    await asyncio.sleep(0)
    for task in flood[20:90]:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    assert len(served.order) == 30
    await served.request("flood")


async def test_a_hundred_users_are_a_flood_too() -> None:
    served = Served()
    tasks = [asyncio.create_task(served.request(f"user-{i}", cost=0.001)) for i in range(100)]
    await asyncio.sleep(0)
    assert len(served.order) <= 20
    await asyncio.gather(*tasks)
    assert len(served.order) == 100


async def test_who_waits_behind_himself_alone_is_no_crowd() -> None:
    now = 100.0
    turns = Turns(lambda: 0.0, lambda: now)

    def ask(flow: str) -> asyncio.Future[None] | None:
        return None if turns.taken(flow) else turns.wait(flow)

    ask("earlier")
    now += 2
    ask("flood")
    now += 2
    waiting = [asked for _ in range(100) if (asked := ask("flood"))]
    assert waiting
    assert not turns.crowded()
    ask("quiet")
    assert turns.crowded()
    now += 2
    assert not turns.crowded()
    await asyncio.gather(*waiting)
    assert not turns.crowded()


async def test_a_crowd_is_one_for_a_moment_after_the_last_has_had_his_turn() -> None:
    """Who comes between two steps of a flood finds nobody waiting."""
    now = 100.0
    turns = Turns(lambda: 0.0, lambda: now)
    turns.taken("earlier")
    waiting = [turns.wait("flood") for _ in range(100) if not turns.taken("flood")]
    await asyncio.gather(*waiting)
    assert turns.crowded()
    now += CROWD
    assert not turns.crowded()


async def test_steps_are_shorter_in_company() -> None:
    """As many requests begin in one as somebody else may wait for."""
    busy, now = 0.0, 100.0
    turns = Turns(lambda: busy, lambda: now)

    async def request(flow: str) -> None:
        nonlocal busy
        if not turns.taken(flow):
            await turns.wait(flow)
        busy += STEP / 6

    async def begun_in_a_step() -> float:
        before = busy
        await asyncio.sleep(0)
        return busy - before

    async def longest(*flows: str) -> float:
        tasks = [asyncio.create_task(request(flow)) for _ in range(400 // len(flows)) for flow in flows]
        for _ in range(20):  # until the number of a step's requests has settled
            await asyncio.sleep(0)
        found = max([await begun_in_a_step() for _ in range(10)])
        await asyncio.gather(*tasks)
        return found

    await request("alone")
    now += 10
    assert SHORT * 1.1 < await longest("alone") < STEP * 1.1
    now += 10
    assert await longest("one", "another") < SHORT * 1.1


async def test_steps_that_had_to_wait_for_a_cpu_say_that_they_are_scarce() -> None:
    cpu = wall = 0.0
    turns = Turns(lambda: cpu, lambda: wall)

    async def steps(on_cpu: float, by_the_clock: float) -> None:
        nonlocal cpu, wall
        for _ in range(100):
            assert turns.taken("one")
            cpu += on_cpu
            wall += by_the_clock
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await steps(0.0001, 0.000102)
    assert not turns.pressed()
    await steps(0.0001, 0.0002)
    assert turns.pressed()
    await steps(0.0001, 0.0001)
    assert not turns.pressed()


async def test_what_a_request_has_left_to_do_takes_a_turn_and_comes_before_requests_that_have_not_begun() -> None:
    served = Served()
    stored: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def writes() -> str:
        answer = await stored
        served.now += 0.005
        served.order.append("written")
        return answer

    async def request() -> str:
        assert served.turns.taken("flood")
        return await served.turns.each_step("flood", writes())

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


async def test_many_that_go_on_at_once_do_so_in_turn() -> None:
    served = Served()
    committed = asyncio.Event()

    async def writes() -> None:
        await committed.wait()
        served.now += 0.005
        served.order.append("written")

    tasks = [asyncio.create_task(served.turns.each_step("flood", writes())) for _ in range(50)]
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
    turns = Turns(lambda: 0.0)
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

    task = asyncio.create_task(turns.each_step("one", work(failing)))
    await asyncio.sleep(0)
    failing.set_exception(OSError())
    assert await task == "told"
    task = asyncio.create_task(turns.each_step("one", work(loop.create_future())))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["failed", "cancelled"]
