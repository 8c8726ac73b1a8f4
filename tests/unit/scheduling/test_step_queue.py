"""Tests of `StepQueue`: how many parts of long work run in one step of the event loop."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tetrapod.generic.scheduling.step_queue import StepQueue


@pytest.mark.parametrize(
    ("longest", "order"),
    [
        pytest.param(0, "0 other 1 other 2 other 3 other 4 5 6 7", id="one part a step"),
        pytest.param(2, "0 other 1 2 other 3 4 other 5 6 other 7", id="limited"),
        pytest.param(9, "0 other 1 2 3 other 4 5 6 other 7 other", id="half as long as other work"),
    ],
)
async def test_a_step_takes_half_as_long_as_other_work_did_before_it(longest: float, order: str) -> None:
    now = [0.0]
    queue = StepQueue(longest, lambda: now[0])
    loop = asyncio.get_running_loop()
    calls: list[str] = []

    def part(number: int) -> None:
        now[0] += 1
        calls.append(str(number))

    def other(left: int) -> None:
        now[0] += 6
        calls.append("other")
        if left:
            loop.call_soon(other, left - 1)

    for number in range(8):
        queue.add(loop, partial(part, number))
    loop.call_soon(other, 3)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not queue
    assert " ".join(calls) == order


async def test_parts_after_one_that_fails_are_called() -> None:
    queue = StepQueue()
    loop = asyncio.get_running_loop()
    errors: list[str] = []
    loop.set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
    called = asyncio.Event()

    def fails() -> None:
        raise ValueError("a part")

    queue.add(loop, fails)
    queue.add(loop, called.set)
    async with asyncio.timeout(20):
        await called.wait()
    assert errors == ["a part"]
