"""Tests of the limits of request bodies in memory: each user has a share, and waiting users are served fairly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from support import virtual_time
from tetrapod.generic.http.request_bodies import LONGEST_WAIT, RequestBodies
from tetrapod.machinery.status import StatusError


class Reservations:
    """Reservations of several users, each in a task of its own, and the order in which they got their memory."""

    def __init__(self, process_limit: int = 100, user_limit: int = 50) -> None:
        self.bodies = RequestBodies(process_limit, user_limit)
        self.granted: list[str] = []

    async def begin(self, *asked: tuple[str, int]) -> list[asyncio.Task[None]]:
        """Begin reservations in this order, and wait until each has its memory or waits for it."""
        tasks = []
        for user, size in asked:
            tasks.append(asyncio.create_task(self._reserve(user, size)))
            await asyncio.sleep(0)
        await self.settle()
        return tasks

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _reserve(self, user: str, size: int) -> None:
        await self.bodies.reserve(user, size)
        self.granted.append(user)


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_user_beyond_their_share_waits_while_others_are_served() -> None:
    reservations = Reservations()
    waiting = await reservations.begin(("a", 30), ("a", 30), ("b", 30))
    assert reservations.granted == ["a", "b"]
    assert reservations.bodies.total == 60
    reservations.bodies.release("a", 30)
    await reservations.settle()
    assert reservations.granted == ["a", "b", "a"]
    await _ended(waiting)


async def test_memory_of_the_process_goes_to_the_user_who_holds_least() -> None:
    reservations = Reservations()
    waiting = await reservations.begin(("a", 50), ("b", 40), ("b", 10), ("c", 20), ("d", 5))
    assert reservations.granted == ["a", "b", "b"]
    reservations.bodies.release("a", 50)
    await reservations.settle()
    assert reservations.granted == ["a", "b", "b", "c", "d"]
    await _ended(waiting)


async def test_a_large_body_is_not_overtaken_by_small_ones() -> None:
    reservations = Reservations()
    waiting = await reservations.begin(("a", 50), ("b", 40), ("c", 30), ("d", 5))
    assert reservations.granted == ["a", "b"]
    reservations.bodies.release("b", 40)
    await reservations.settle()
    assert reservations.granted == ["a", "b", "c", "d"]
    await _ended(waiting)


async def test_a_body_larger_than_the_share_is_accepted_alone() -> None:
    reservations = Reservations()
    waiting = await reservations.begin(("a", 80), ("a", 1))
    assert reservations.granted == ["a"]
    reservations.bodies.release("a", 80)
    await reservations.settle()
    assert reservations.granted == ["a", "a"]
    await _ended(waiting)


async def test_exempt_bodies_are_counted_but_do_not_wait() -> None:
    bodies = RequestBodies(100, 50)
    for _ in range(3):
        await bodies.reserve("admin", 50, exempt=True)
    assert bodies.total == 150
    for _ in range(3):
        bodies.release("admin", 50)
    assert bodies.total == 0


def test_a_body_that_waits_too_long_is_rejected_and_holds_up_no_other() -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        reservations = Reservations()
        tasks = await reservations.begin(("a", 50), ("b", 30), ("c", 40))
        await asyncio.sleep(LONGEST_WAIT / 2)
        tasks += await reservations.begin(("d", 20))
        assert reservations.granted == ["a", "b"]
        with pytest.raises(StatusError) as rejected:
            await tasks[2]
        assert (rejected.value.code, rejected.value.retry_after) == (429, 1)
        assert loop.time() == pytest.approx(LONGEST_WAIT)
        await reservations.settle()
        assert reservations.granted == ["a", "b", "d"]

    virtual_time.run(wait())


async def test_a_cancelled_request_holds_and_awaits_nothing() -> None:
    reservations = Reservations()
    tasks = await reservations.begin(("a", 50), ("b", 50), ("c", 50), ("d", 50))
    tasks[2].cancel()
    reservations.bodies.release("a", 50)
    tasks[3].cancel()  # it got its memory in the same step
    await _ended(tasks)
    assert reservations.granted == ["a", "b"]
    assert reservations.bodies.total == 50
