"""The order in which requests get the threads for large work."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from tetrapod.generic.scheduling.large_work_threads import LargeWorkThreads

THREADS = 2


async def test_few_requests_of_a_flood_have_begun_at_once() -> None:
    threads = LargeWorkThreads(THREADS)
    begun, most, ended = 0, 0, 0

    async def request() -> None:
        nonlocal begun, most, ended
        await threads.call(lambda: None)
        begun += 1
        most = max(most, begun - ended)
        for _ in range(3):
            await asyncio.sleep(0)
            await threads.call(lambda: None)
        ended += 1

    await asyncio.gather(*(request() for _ in range(100)))
    assert ended == 100
    assert most < 20


async def test_a_new_request_is_not_kept_waiting_by_others_that_go_on_forever() -> None:
    threads = LargeWorkThreads(THREADS)

    async def forever() -> None:
        while True:
            await threads.call(lambda: None)

    others = [asyncio.create_task(forever()) for _ in range(10)]
    try:
        for _ in range(5):
            assert await asyncio.wait_for(asyncio.create_task(threads.call(lambda: "called")), 30) == "called"
    finally:
        for task in others:
            task.cancel()


async def test_no_more_functions_run_at_once_than_there_are_threads() -> None:
    threads = LargeWorkThreads(THREADS, long=0)
    running = most = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.001)
        with lock:
            running -= 1

    await asyncio.gather(*(threads.call(work) for _ in range(50)))
    assert most == THREADS


async def test_short_functions_run_one_at_a_time() -> None:
    threads = LargeWorkThreads(THREADS, long=3600)
    running = most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.001)
        running -= 1

    await asyncio.gather(*(threads.call(work) for _ in range(50)))
    assert most == 1


async def test_functions_run_beside_one_that_takes_long() -> None:
    threads = LargeWorkThreads(THREADS, long=0.01)
    go_on = threading.Event()
    long = asyncio.create_task(threads.call(lambda: go_on.wait(30)))
    await asyncio.sleep(0)
    try:
        called = await asyncio.wait_for(asyncio.gather(*(threads.call(lambda: "called") for _ in range(20))), 30)
        assert called == ["called"] * 20
        assert not long.done()
    finally:
        go_on.set()
    assert await long


async def test_a_new_request_does_not_overtake_one_that_waits_for_the_second_thread() -> None:
    threads = LargeWorkThreads(THREADS, long=0.01)
    go_on, called = threading.Event(), []
    long = asyncio.create_task(threads.call(lambda: go_on.wait(30)))
    first = asyncio.create_task(threads.call(lambda: called.append("first")))
    await asyncio.sleep(0)
    threading.Event().wait(0.02)  # the call has taken long, and the loop has not noticed yet
    second = asyncio.create_task(threads.call(lambda: called.append("second")))
    try:
        await asyncio.wait_for(asyncio.gather(first, second), 30)
    finally:
        go_on.set()
    await long
    assert called == ["first", "second"]


@pytest.mark.parametrize("granted", [False, True])
async def test_a_cancelled_request_hands_its_thread_to_the_next_one(granted: bool) -> None:
    threads = LargeWorkThreads(1)
    go_on, called = threading.Event(), []
    first = asyncio.create_task(threads.call(go_on.wait))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.call(lambda: called.append("cancelled")))
    last = asyncio.create_task(threads.call(lambda: called.append("last")))
    await asyncio.sleep(0)
    if granted:
        go_on.set()
        while len(threads._first) == 2:  # the thread gives the turn, the loop does not run yet
            threading.Event().wait(0.001)
        waiting.cancel()
    else:
        waiting.cancel()
        await asyncio.sleep(0)
        go_on.set()
    with suppress(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(asyncio.gather(first, last), 30)
    assert called == ["last"]
    assert await asyncio.wait_for(threads.call(lambda: "again"), 30) == "again"


async def test_the_thread_of_a_cancelled_request_is_used_again_when_its_function_ends() -> None:
    threads = LargeWorkThreads(1)
    running, go_on = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        assert go_on.wait(30)

    first = asyncio.create_task(threads.call(work))
    await asyncio.to_thread(running.wait, 30)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    second = asyncio.create_task(threads.call(lambda: "second"))
    await asyncio.sleep(0)
    assert not second.done()
    go_on.set()
    assert await asyncio.wait_for(second, 30) == "second"


def test_waiting_calls_of_a_closed_event_loop_are_skipped() -> None:
    threads = LargeWorkThreads(1)
    go_on = threading.Event()

    async def leave() -> None:
        running = asyncio.create_task(threads.call(go_on.wait))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(threads._wait_for_turn())
        await asyncio.sleep(0)
        running.cancel()
        waiting._log_destroy_pending = False  # type: ignore[attr-defined]

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    go_on.set()
    assert asyncio.run(asyncio.wait_for(_call(threads), 30)) == "called"


async def _call(threads: LargeWorkThreads) -> str:
    return await threads.call(lambda: "called")
