"""`LoopMonitor` leaves nothing to the cyclic garbage collector."""

from __future__ import annotations

import asyncio
import gc

from tetrapod.generic.http.loop_monitor import LoopMonitor
from tetrapod.generic.request import Request


async def _await_failed_connection() -> None:
    """Await a future that fails, as uvloop's create_connection does, and end without another wait."""
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(failed.set_exception, ConnectionRefusedError())
    try:
        await failed
    except ConnectionRefusedError:
        pass
    finally:
        del failed


async def _measure() -> None:
    await LoopMonitor().measured(Request("GET", "/"), _await_failed_connection())


def test_a_failed_wait_that_is_the_last_one_leaves_no_reference_cycle() -> None:
    with asyncio.Runner() as runner:
        runner.run(_measure())
        gc.collect()
        gc.disable()
        try:
            runner.run(_measure())
            assert gc.collect() == 0
        finally:
            gc.enable()
