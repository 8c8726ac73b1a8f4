"""Tests of large work in threads: the settings of the interpreter while it runs."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import traceback
import weakref

import pytest

from support.waiting import eventually
from tetrapod.generic.scheduling import offload
from tetrapod.generic.scheduling.offload import in_thread, restore_collector


@pytest.fixture(autouse=True)
def _no_rest_of_other_tests() -> None:
    """Restore the collector, which large work of an earlier test left to the timer of a closed event loop."""
    restore_collector()


async def test_threads_switch_often_only_while_there_is_large_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload._LargeWork, "REST", 0.01)
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
    assert sys.getswitchinterval() == before[0]
    assert gc.get_threshold()[2] > before[1][2]  # the results are still in use
    await asyncio.sleep(0.05)
    assert gc.get_threshold() == before[1]


async def test_there_is_no_full_collection_between_pieces_of_large_work() -> None:
    before = gc.get_threshold()
    await in_thread(int)
    await in_thread(int)
    assert offload._LARGE_WORK._restoring is not None
    assert gc.get_threshold()[2] == offload._LargeWork.NEVER
    restore_collector()
    assert gc.get_threshold() == before


async def test_large_work_that_never_rests_is_interrupted_by_full_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[int] = []

    def record(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            collections.append(info["generation"])

    gc.callbacks.append(record)
    try:
        await in_thread(int)
        assert not collections
        monkeypatch.setattr(offload._LargeWork, "LONGEST", -1.0)
        await in_thread(int)
        assert collections
    finally:
        gc.callbacks.remove(record)


class _Tracked:
    """A local variable of a function that fails."""


async def test_a_failure_in_a_thread_does_not_keep_local_variables() -> None:
    kept: list[weakref.ref[_Tracked]] = []

    def fail() -> None:
        local = _Tracked()
        kept.append(weakref.ref(local))
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await in_thread(fail)
    assert kept[0]() is None


async def test_a_failure_in_a_thread_does_not_keep_local_variables_of_the_failure_that_it_replaced() -> None:
    kept: list[weakref.ref[_Tracked]] = []

    def fail() -> None:
        local = _Tracked()
        kept.append(weakref.ref(local))
        raise ValueError("failed")

    def replace() -> None:
        try:
            fail()
        except ValueError:
            raise KeyError("failed") from None

    with pytest.raises(KeyError, match="failed"):
        await in_thread(replace)
    assert kept[0]() is None


async def test_a_failure_in_a_thread_does_not_keep_the_arguments() -> None:
    def fail(_: _Tracked) -> None:
        raise ValueError("failed")

    argument = _Tracked()
    kept = weakref.ref(argument)
    with pytest.raises(ValueError, match="failed") as failed:
        await in_thread(fail, argument)
    del argument
    assert failed.value.__traceback__ is not None
    traceback.clear_frames(failed.value.__traceback__.tb_next)  # as large_objects.free does
    assert kept() is None


async def test_work_whose_caller_was_cancelled_is_large_work_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload._LargeWork, "REST", 0.0)
    offload.restore_collector()  # the timer of an earlier test has ended with its event loop
    before = sys.getswitchinterval(), gc.get_threshold()
    running, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    kept: list[weakref.ref[_Tracked]] = []

    def work(_: dict[str, _Tracked]) -> None:
        loop.call_soon_threadsafe(running.set)
        assert go_on.wait(30)

    def start() -> asyncio.Task[None]:
        argument = {"a": _Tracked()}
        kept.append(weakref.ref(argument["a"]))
        return asyncio.create_task(in_thread(work, argument))

    task = start()
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)
    assert (sys.getswitchinterval(), gc.get_threshold()) != before
    go_on.set()

    async def state() -> object:
        gc.collect()  # the frames of the cancelled task refer to the argument
        return (sys.getswitchinterval(), gc.get_threshold()), kept[0]()

    await eventually(state, lambda found: found == (before, None))


def test_work_that_outlives_its_event_loop_restores_the_settings() -> None:
    offload.restore_collector()
    before = sys.getswitchinterval(), gc.get_threshold()
    running, go_on = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        assert go_on.wait(30)

    async def leave() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(running.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert (sys.getswitchinterval(), gc.get_threshold()) != before
    go_on.set()
    asyncio.run(eventually(settings, lambda found: found == before))


async def settings() -> tuple[float, tuple[int, int, int]]:
    return sys.getswitchinterval(), gc.get_threshold()
