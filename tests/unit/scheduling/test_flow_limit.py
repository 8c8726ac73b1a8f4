"""Tests of the flow limiter: while several flows are active, each has few recent requests in flight."""

from __future__ import annotations

import asyncio

import pytest

from support.waiting import eventually
from tetrapod.generic.flowcontrol.flow_limit import MANY, READ, WRITE, FlowLimiter, InFlight, local_weight
from tetrapod.generic.http.request import ForwardingWriter, Response, StreamResponse, StreamWriter
from tetrapod.generic.scheduling.config import DEFAULT

MOST = DEFAULT.in_flight // READ


class Nowhere(ForwardingWriter):
    def __init__(self) -> None:
        return

    def write(self, data: bytes) -> None:
        return


class Front:
    """Passes requests on, with a clock and other active flows that the test controls."""

    def __init__(self) -> None:
        self.now = 100.0
        self.company, self.pressed = True, False
        self.pace = FlowLimiter(lambda: self.company, lambda: self.pressed, now=lambda: self.now)
        self.sent: list[InFlight] = []

    async def request(self, flow: str, weight: int = READ) -> None:
        self.sent.append(self.pace.enter(flow, weight) or await self.pace.wait(flow, weight))

    def flood(self, count: int, weight: int = READ) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request("flood", weight)) for _ in range(count)]

    async def under_way(self) -> int:
        return len(self.sent)

    async def steps(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_single_flow_is_not_limited() -> None:
    front = Front()
    front.company = False
    await asyncio.gather(*front.flood(100))
    assert len(front.sent) == 100


def test_without_forwarding_only_writes_are_limited() -> None:
    assert not any(map(local_weight, ("get", "list", "watch")))
    assert all(map(local_weight, ("create", "update", "patch", "delete", "deletecollection")))


async def test_with_several_flows_few_requests_of_each_are_in_flight() -> None:
    front = Front()
    flood = front.flood(20)
    await front.steps()
    assert len(front.sent) == MOST
    await front.request("quiet")
    assert len(front.sent) == MOST + 1
    for answered in range(MOST):
        front.pace.leave(front.sent[answered])
        await front.steps()
        assert len(front.sent) == MOST + 2 + answered
    for sent in front.sent:  # no request twice
        front.pace.leave(sent)
    front.company = False
    await asyncio.gather(*flood)


@pytest.mark.parametrize(("pressed", "room"), [(False, DEFAULT.in_flight), (True, DEFAULT.in_flight_scarce)])
@pytest.mark.parametrize("weight", [READ, WRITE, MANY])
async def test_fewer_are_under_way_where_they_are_heavy_or_cpus_are_scarce(
    pressed: bool, room: int, weight: int
) -> None:
    front = Front()
    front.pressed = pressed
    flood = front.flood(20, weight)
    await front.steps()
    assert len(front.sent) == max(1, room // weight)
    front.company = False
    await asyncio.gather(*flood)


async def test_long_requests_stop_counting_as_in_flight() -> None:
    front = Front()
    flood = front.flood(3 * MOST)
    await front.steps()
    assert len(front.sent) == MOST
    front.now += 2 * DEFAULT.recent
    await eventually(front.under_way, lambda count: count == 2 * MOST)
    front.now += 2 * DEFAULT.recent
    await asyncio.gather(*flood)
    assert len(front.sent) == 3 * MOST


@pytest.mark.parametrize("weight", [READ, WRITE, MANY])
async def test_heavier_requests_count_as_recent_for_longer(weight: int) -> None:
    front = Front()
    most = DEFAULT.in_flight // weight
    flood = front.flood(2 * most, weight)
    await front.steps()
    front.now += 0.9 * weight * DEFAULT.recent
    await front.request("flood of another")
    front.pace.leave(front.sent[0])
    await eventually(front.under_way, lambda count: count == most + 2)
    front.now += 0.2 * weight * DEFAULT.recent
    await asyncio.gather(*flood)


async def test_limits_end_when_other_flows_are_idle() -> None:
    front = Front()
    flood = front.flood(50)
    await front.steps()
    front.company = False
    await asyncio.gather(*flood)
    assert len(front.sent) == 50


async def test_a_client_that_disconnects_while_waiting_frees_its_place() -> None:
    front = Front()
    flood = front.flood(MOST + 10)
    await front.steps()
    for task in flood[MOST : MOST + 9]:
        task.cancel()
    await front.steps()
    front.pace.leave(front.sent[0])
    await flood[-1]
    assert len(front.sent) == MOST + 1


@pytest.mark.parametrize("endless", [False, True])
async def test_a_streamed_answer_is_under_way_until_its_end_but_for_a_watch(endless: bool) -> None:
    front = Front()
    flood = front.flood(MOST + 1)
    await front.steps()

    async def run(writer: StreamWriter) -> None:
        await asyncio.sleep(0)

    response = StreamResponse(200, [], run, endless=endless)
    front.pace.leave_after(response, front.sent[0])
    await front.steps()
    assert len(front.sent) == (MOST + 1 if endless else MOST)
    await response.run(Nowhere())
    await asyncio.gather(*flood)


async def test_an_answer_that_is_whole_is_not_under_way_any_more() -> None:
    front = Front()
    flood = front.flood(MOST + 1)
    await front.steps()
    front.pace.leave_after(Response(200, []), front.sent[0])
    await asyncio.gather(*flood)
