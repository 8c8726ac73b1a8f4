"""Tests of the queues of a priority level, with a clock that the test controls."""

from __future__ import annotations

import asyncio
import collections

import pytest

from tetrapod.generic.flowcontrol.queue import Queuing, Ticket
from tetrapod.generic.flowcontrol.queueset import QueueSet
from tetrapod.generic.flowcontrol.shuffle_sharding import deal, flow_hash
from tetrapod.generic.flowcontrol.work_estimator import LEAST, Estimate
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

INFO = RequestInfo(True, "/api/v1/pods", "list", resource="pods")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def start(queues: QueueSet, user: str = "alice", estimate: Estimate = LEAST) -> Ticket | None:
    hand = (
        deal(flow_hash("s", user), queues.queuing.queues, queues.queuing.hand_size) if queues.queuing.queues > 0 else ()
    )
    return queues.start(estimate, hand, ("level", "s"), user, UserInfo(user), INFO)


def begin(queues: QueueSet, user: str = "alice", estimate: Estimate = LEAST) -> Ticket:
    ticket = start(queues, user, estimate)
    assert ticket is not None
    return ticket


def serves(ticket: Ticket) -> bool:
    return ticket.queue is not None and ticket in ticket.queue.executing


async def test_without_queues_what_is_beyond_the_limit_is_rejected_and_freed_seats_are_given_again() -> None:
    queues = QueueSet("level", Queuing(0), 2)
    first, second = begin(queues), begin(queues)
    assert start(queues) is None
    queues.finish(first)
    assert not begin(queues).waits
    queues.finish(second)
    assert (queues.dispatched.total(), queues.rejected) == (3, 1)


async def test_the_exempt_level_has_no_limit() -> None:
    queues = QueueSet("exempt", Queuing(-1), 0)
    assert not any(begin(queues).waits for _ in range(100))


async def test_a_full_queue_rejects_and_a_waiting_request_gets_the_next_seat() -> None:
    queues = QueueSet("level", Queuing(1, 2, 1), 1)
    running = begin(queues)
    waiting = [begin(queues) for _ in range(2)]
    assert all(ticket.waits for ticket in waiting)
    assert start(queues) is None
    queues.finish(running)
    assert await queues.wait(waiting[0], 10)
    assert waiting[1].waits


async def test_a_request_that_times_out_in_its_queue_takes_no_seat() -> None:
    queues = QueueSet("level", Queuing(1, 5, 1), 1)
    running, impatient, patient = begin(queues), begin(queues), begin(queues)
    assert not await queues.wait(impatient, 0.01)
    queues.finish(running)
    assert await queues.wait(patient, 10)
    queues.finish(patient)
    assert queues.idle
    assert queues.seats_in_use == queues.seats_waiting == 0


async def test_a_client_that_disconnects_while_queued_or_dispatched_leaves_no_seat_taken() -> None:
    queues = QueueSet("level", Queuing(1, 5, 1), 1)
    running, waiting, called = begin(queues), begin(queues), begin(queues)
    tasks = [asyncio.create_task(queues.wait(ticket, 10)) for ticket in (waiting, called)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    queues.finish(running)
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    assert queues.idle
    assert queues.seats_in_use == 0


async def test_seats_linger_after_a_request_with_many_watchers() -> None:
    queues = QueueSet("level", Queuing(0), 3)
    ticket = begin(queues, estimate=Estimate(1, 3, 0.005))
    queues.finish(ticket)
    assert start(queues) is None
    assert queues.lingering.total() == 3
    async with asyncio.timeout(5):
        while queues.seats_in_use:  # noqa: ASYNC110  seats tell nobody that they are free
            await asyncio.sleep(0.001)
    assert start(queues) is not None


async def test_a_request_wider_than_the_limit_runs_alone() -> None:
    queues = QueueSet("level", Queuing(1, 5, 1), 2)
    wide = begin(queues, estimate=Estimate(10))
    assert not wide.waits
    narrow = begin(queues)
    assert narrow.waits
    queues.finish(wide)
    assert not narrow.waits


@pytest.mark.parametrize("flood", [20, 200])
async def test_a_quiet_user_is_served_soon_despite_the_queue_of_another(flood: int) -> None:
    clock = Clock()
    queues = QueueSet("level", Queuing(64, 500, 6), 4, clock)
    executing = collections.deque(t for t in (begin(queues, "flood") for _ in range(4)))
    backlog = [begin(queues, "flood") for _ in range(flood)]
    quiet = begin(queues, "quiet")
    turns = 0
    while quiet.waits:
        clock.now += 0.003
        queues.finish(executing.popleft())
        executing += [t for t in backlog if serves(t) and t not in executing]
        turns += 1
    assert turns <= 12


async def test_executing_long_requests_of_a_flood_count_before_they_end() -> None:
    clock = Clock()
    queues = QueueSet("level", Queuing(64, 500, 6), 24, clock)
    executing = collections.deque(t for t in (begin(queues, "flood") for _ in range(24)))
    backlog = [begin(queues, "flood") for _ in range(200)]

    def one_ends() -> None:
        """Each request took 0.12 s, forty times the estimate."""
        clock.now += 0.005
        queues.finish(executing.popleft())
        executing.extend(t for t in backlog if serves(t) and t not in executing)

    for _ in range(60):
        one_ends()
    quiet = begin(queues, "quiet")
    turns = 0
    while quiet.waits:
        one_ends()
        turns += 1
    assert turns <= 12


async def test_a_flood_leaves_seats_to_others_and_is_rejected_beyond_its_queues() -> None:
    queues = QueueSet("level", Queuing(64, 5, 6), 16)
    flood = [start(queues, "flood") for _ in range(100)]
    assert sum(ticket is not None and not ticket.waits for ticket in flood) == 14
    assert sum(ticket is not None and ticket.waits for ticket in flood) == 30
    assert not begin(queues, "quiet").waits
    for ticket in [ticket for ticket in flood if ticket is not None and not ticket.waits]:
        queues.finish(ticket)
    assert queues.seats_in_use == 15


async def test_a_client_that_disconnects_while_queued_is_counted_once() -> None:
    queues = QueueSet("level", Queuing(1, 5, 1), 1)
    running, impatient = begin(queues), begin(queues)
    assert not await queues.wait(impatient, 0.01)
    assert (queues.waiting, queues.seats_waiting) == (0, 0)
    queues.finish(running)
    assert queues.idle


async def test_two_floods_get_equal_shares() -> None:
    clock = Clock()
    queues = QueueSet("level", Queuing(64, 500, 6), 2, clock)
    tickets = [(user, begin(queues, user)) for _ in range(150) for user in ("one", "two")]
    served: collections.Counter[str] = collections.Counter()
    while sum(served.values()) < 100:
        clock.now += 0.003
        for user, ticket in tickets:
            if serves(ticket):
                queues.finish(ticket)
                served[user] += 1
                break
    assert abs(served["one"] - served["two"]) <= 20


async def test_fewer_queues_are_wanted_and_those_that_wait_in_the_others_are_served_all_the_same() -> None:
    queues = QueueSet("level", Queuing(8, 5, 8), 1)
    running = begin(queues)
    waiting = [begin(queues, f"user-{i}") for i in range(6)]
    queues.configure(Queuing(1, 5, 1), 1)
    while not queues.idle:
        queues.finish(next(ticket for ticket in (running, *waiting) if serves(ticket)))
    assert queues.dispatched.total() == 7
    assert len(queues.queues) == 1
