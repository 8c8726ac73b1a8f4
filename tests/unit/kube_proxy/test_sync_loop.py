"""Tests of the loop that writes rules: its pauses, repetitions and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.waiting import eventually
from tetrapod.kube_proxy.sync_loop import SyncLoop

LONG = 3600.0


class Work:
    """Counts its calls, and fails as often as told."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    async def __call__(self) -> bool:
        self.calls += 1
        if self.calls <= self._failures and self._error is not None:
            raise self._error
        return self.calls > self._failures


@asynccontextmanager
async def looping(
    work: Work, *, pause: float = 0.0, retry: float = LONG, longest: float = LONG
) -> AsyncIterator[SyncLoop]:
    loop = SyncLoop("test", work, pause=pause, retry=retry, longest=longest)
    task = asyncio.create_task(loop.run())
    yield loop
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def calls(work: Work, count: int) -> None:
    async def get() -> int:
        return work.calls

    await eventually(get, lambda value: value == count)


async def test_work_runs_on_request_only() -> None:
    work = Work()
    async with looping(work) as loop:
        loop.request()
        loop.request()
        await calls(work, 1)
        loop.request()
        await calls(work, 2)


async def test_requests_during_the_pause_are_one() -> None:
    work = Work()
    async with looping(work, pause=LONG) as loop:
        loop.request()
        await calls(work, 1)
        loop.request()
        await asyncio.sleep(0)
        assert work.calls == 1


async def test_failed_work_is_repeated_until_it_succeeds() -> None:
    work = Work(failures=2)
    async with looping(work, retry=0.01) as loop:
        loop.request()
        await calls(work, 3)


async def test_work_that_raises_is_repeated_too() -> None:
    work = Work(failures=1, error=RuntimeError("boom"))
    async with looping(work, retry=0.01) as loop:
        loop.request()
        await calls(work, 2)


async def test_work_runs_regularly_without_a_request() -> None:
    work = Work()
    async with looping(work, longest=0.001):

        async def get() -> int:
            return work.calls

        await eventually(get, lambda count: count >= 3)
