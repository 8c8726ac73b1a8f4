"""Tests of eager tasks: a request's task starts running at once and otherwise behaves like any other task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from tetrapod.generic.scheduling.eager_tasks import start_eagerly

SEEN: ContextVar[str] = ContextVar("seen", default="")


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Future[asyncio.Task[None]]:
    """Call a function as the event loop calls a protocol: outside any task."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[asyncio.Task[None]] = loop.create_future()
    loop.call_soon(lambda: made.set_result(start_eagerly(loop, work)))
    return made


async def test_a_task_without_waiting_is_done_before_the_call_returns() -> None:
    loop = asyncio.get_running_loop()
    done: list[str] = []
    seen: asyncio.Future[tuple[list[str], asyncio.Task[None]]] = loop.create_future()

    async def work() -> None:
        done.append("work")

    def arrived() -> None:
        task = start_eagerly(loop, work())
        seen.set_result((list(done), task))

    loop.call_soon(arrived)
    before, task = await seen
    assert before == ["work"]
    await task


async def test_it_is_the_current_task_from_the_first_line_and_keeps_its_context() -> None:
    observed: list[object] = []

    async def work() -> None:
        SEEN.set("inside")
        observed.append(asyncio.current_task())
        await asyncio.sleep(0)
        observed.append(asyncio.current_task())
        observed.append(SEEN.get())

    task = await begin(work())
    await task
    assert observed == [task, task, "inside"]
    assert SEEN.get() == ""


@pytest.mark.parametrize("steps", [0, 1, 3])
async def test_a_cancelled_task_cancels_what_it_awaits(steps: int) -> None:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    heard: list[str] = []

    async def work() -> None:
        try:
            await waited
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    task = await begin(work())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["cancelled"]
    assert waited.cancelled()


async def test_a_timeout_set_in_the_first_part_ends_what_comes_later() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append("in time")
        await asyncio.sleep(0)

    await (await begin(work()))
    assert ended == ["in time"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_error_of_the_coroutine_is_raised_by_its_task(at_once: bool) -> None:
    async def work() -> None:
        if not at_once:
            await asyncio.sleep(0)
        raise LookupError("lost")

    task = await begin(work())
    with pytest.raises(LookupError, match="lost"):
        await task


async def test_an_awaited_error_can_be_handled() -> None:
    loop = asyncio.get_running_loop()
    failing: asyncio.Future[None] = loop.create_future()
    observed: list[str] = []

    async def work() -> None:
        try:
            await failing
        except LookupError:
            observed.append("handled")
        await asyncio.sleep(0)
        observed.append("went on")

    task = await begin(work())
    failing.set_exception(LookupError())
    await task
    assert observed == ["handled", "went on"]


async def test_inside_another_task_it_begins_in_a_step_of_its_own() -> None:
    observed: list[str] = []

    async def work() -> None:
        observed.append("work")

    task = start_eagerly(asyncio.get_running_loop(), work())
    assert observed == []
    await task
    assert observed == ["work"]
