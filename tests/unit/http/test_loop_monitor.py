"""Tests of `LoopMonitor`: it leaves nothing to the cyclic garbage collector, and its lag excludes time used by other
programs.
"""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from support.waiting import eventually
from tetrapod.generic.http import loop_monitor
from tetrapod.generic.http.loop_monitor import LAG, QUIET_TICKS, LoopMonitor, RunDelay
from tetrapod.generic.http.request import Request


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


@pytest.mark.parametrize(
    ("lag", "cpu", "delay", "caused"),
    [
        (0.5, 0.3, 0.0, 0.3),  # a thread that holds the interpreter lock had to wait for a CPU
        (0.5, 0.5, 0.4, 0.1),  # the loop's thread had to wait for a CPU while another thread ran
        (0.01, 0.0, 0.5, 0.0),
    ],
)
def test_lag_by_cpu_time_leaves_out_what_other_programs_caused(
    monkeypatch: pytest.MonkeyPatch, lag: float, cpu: float, delay: float, caused: float
) -> None:
    monkeypatch.setattr(loop_monitor, "_longest", {"step": 0.0, "wall": 0.0, "cpu": 0.0})
    LoopMonitor().tick(lag, cpu, delay)
    assert loop_monitor.longest() == {"step": 0.0, "wall": lag, "cpu": pytest.approx(caused)}


def test_run_delay_is_zero_where_the_kernel_does_not_count_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", missing)
    delay = RunDelay()
    assert delay.seconds() == 0.0
    delay.close()


def test_run_delay_grows_only() -> None:
    delay = RunDelay()
    first = delay.seconds()
    assert delay.seconds() >= first >= 0.0
    delay.close()


def _lags() -> float:
    """Return how often the lag was measured so far."""
    return sum(LAG.row(())[:-1])


async def test_the_lag_is_measured_while_a_client_waits() -> None:
    monitor, answered = LoopMonitor(), asyncio.Event()

    async def wait() -> None:
        await answered.wait()

    async def serve() -> None:
        await monitor.measured(Request("GET", "/"), wait())

    async def is_measured() -> bool:
        return _lags() >= before + 3 * QUIET_TICKS

    before = _lags()
    request = asyncio.create_task(serve())
    await eventually(is_measured)
    answered.set()
    await request


async def test_the_lag_is_not_measured_for_long_when_no_client_waits() -> None:
    monitor = LoopMonitor()

    async def answer() -> None:
        await asyncio.sleep(0)

    async def has_ended() -> bool:
        return monitor.stale == 0

    before = _lags()
    await monitor.measured(Request("GET", "/"), answer())
    assert not await has_ended()
    await eventually(has_ended)
    assert _lags() - before <= QUIET_TICKS + 1
