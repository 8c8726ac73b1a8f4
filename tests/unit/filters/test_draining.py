"""Tests of waiting for requests in flight while a server shuts down."""

from __future__ import annotations

import asyncio

import pytest

from tetrapod.generic.filters.draining import Draining


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
