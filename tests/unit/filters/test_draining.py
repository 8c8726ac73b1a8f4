"""Tests of waiting for requests in flight while a server shuts down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from support.virtual_time import run
from tetrapod.generic.client.inprocess import QueueWriter
from tetrapod.generic.filters.draining import Draining, with_draining
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.machinery import requestinfo


async def test_wait_returns_when_the_last_request_has_ended() -> None:
    draining = Draining()
    draining.enter()
    waiting = asyncio.create_task(draining.wait(10))
    await asyncio.sleep(0)
    draining.leave()
    await asyncio.wait_for(waiting, 5)


async def test_wait_returns_after_the_timeout() -> None:
    draining = Draining()
    draining.enter()
    await draining.wait(0.01)
    assert draining.in_flight == 1


@pytest.mark.parametrize("steps", range(5))
async def test_a_cancellation_is_not_lost_while_the_last_request_ends(steps: int) -> None:
    """asyncio.wait_for of Python 3.11 returned normally if it was cancelled in the step in which the event was set."""
    draining = Draining()
    draining.enter()
    waiting = asyncio.create_task(draining.wait(10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    draining.leave()
    for _ in range(steps):
        await asyncio.sleep(0)
    was_cancelled = waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled() == was_cancelled


async def stuck(writer: StreamWriter) -> None:
    await asyncio.Event().wait()


async def opened(draining: Draining, run: Callable[[StreamWriter], Awaitable[None]]) -> asyncio.Future[None]:
    """Open a watch through the filter, and return the task that writes its events."""

    async def watch(request: Request) -> Response:
        return StreamResponse(200, [], run, endless=True)

    request = Request("GET", "/api/v1/pods", query_string="watch=1")
    request.info = requestinfo.parse("GET", "/api/v1/pods", "watch=1")
    response = await with_draining(watch, draining)(request)
    assert isinstance(response, StreamResponse)
    task = asyncio.ensure_future(response.run(QueueWriter()))
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize(("grace_period", "last"), [(100.0, 5.0), (2.0, 2.0)])
def test_watches_end_one_after_the_other_within_the_grace_period(grace_period: float, last: float) -> None:
    async def end_thousand() -> list[float]:
        loop, ends = asyncio.get_running_loop(), list[float]()
        draining = Draining(watch_grace_period=grace_period)
        for watch in [await opened(draining, stuck) for _ in range(1000)]:
            watch.add_done_callback(lambda done: ends.append(loop.time()) if done.exception() is None else None)
        await draining.end_watches()
        return ends

    ends = run(end_thousand())  # at least 200 a second
    assert ends == pytest.approx([last / 1000 * number for number in range(1000)], abs=last / 100)


def test_watch_that_does_not_end_is_left_alone_after_the_grace_period() -> None:
    async def stubborn(writer: StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(100)

    async def elapsed() -> float:
        draining = Draining(watch_grace_period=3.0)
        task = await opened(draining, stubborn)
        await draining.end_watches()
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})
        return asyncio.get_running_loop().time()

    assert run(elapsed()) == pytest.approx(3.0)


async def test_timeout_inside_a_watch_is_its_own() -> None:
    async def failing(writer: StreamWriter) -> None:
        raise TimeoutError("of the watch")

    with pytest.raises(TimeoutError, match="of the watch"):
        await (await opened(Draining(watch_grace_period=1.0), failing))
