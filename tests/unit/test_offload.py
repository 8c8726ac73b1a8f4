"""Large work in threads: how the interpreter is set while there is some."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

from tetrapod.generic.scheduling.offload import in_thread


async def test_threads_switch_often_only_while_there_is_large_work() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    running, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> float:
        loop.call_soon_threadsafe(running.set)
        assert go_on.wait(30)
        return sys.getswitchinterval()

    first, second = asyncio.create_task(in_thread(work)), asyncio.create_task(in_thread(work))
    await running.wait()
    assert sys.getswitchinterval() < before[0]
    assert gc.get_threshold()[2] > before[1][2]
    go_on.set()
    assert max(await asyncio.gather(first, second)) < before[0]
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
