"""One run: workers, periodic samples, and the verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from soak.gate import Gate
from soak.prepared import prepare
from soak.report import Result
from soak.samples import Sample, sample
from soak.settings import Settings
from soak.traffic import Traffic
from soak.verdict import FEWEST, Growth, growths, judged
from soak.workers import WORKERS
from soak.worlds import World


async def run(form: str, world: World, settings: Settings, progress: Callable[[str], None] = lambda _: None) -> Result:
    """Put traffic on the servers for the given time, longer if there are too few samples, and judge the growth of their
    processes.
    """
    gate = Gate()
    samples: dict[str, list[Sample]] = {process.name: [] for process in world.processes}
    async with AsyncExitStack() as stack:
        await prepare(world, stack)
        traffic = Traffic(world, gate, settings.pause)
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            workers = [
                group.create_task(work(traffic, number)) for work in WORKERS for number in range(settings.workers)
            ]
            try:
                while (elapsed := time.monotonic() - began) < settings.seconds or _after_warm_up(
                    samples, settings
                ) < FEWEST:
                    async with gate.shut():
                        for process in world.processes:
                            samples[process.name].append(await sample(process, elapsed, traffic.requests))
                    progress(_line(elapsed, traffic.requests, samples))
                    await asyncio.sleep(settings.interval)
                async with gate.shut():  # uvloop cannot close while a cancelled connection is in its handshake
                    for worker in workers:
                        worker.cancel()
            finally:
                for worker in workers:
                    worker.cancel()
        await _settle(world, traffic, samples, settings, began)
    kept, found = _judge(samples, settings)
    return Result(form, settings.seconds, traffic.requests, traffic.statuses, traffic.missing(), kept, found)


async def _settle(
    world: World, traffic: Traffic, samples: dict[str, list[Sample]], settings: Settings, began: float
) -> None:
    """Go on with samples without traffic until nothing but memory has grown, or until the time for that is over."""
    until = time.monotonic() + settings.settle
    while time.monotonic() < until:
        _, found = _judge(samples, settings)
        if not any(growth.failed for each in found.values() for growth in each if growth.name != "memory"):
            return
        await asyncio.sleep(1)
        for process in world.processes:
            samples[process.name].append(await sample(process, time.monotonic() - began, traffic.requests))


def _after_warm_up(samples: dict[str, list[Sample]], settings: Settings) -> int:
    """Count the samples that can be judged. On a busy machine there may be few when the time is over."""
    return min(sum(sample.seconds >= settings.warm_up for sample in each) for each in samples.values())


def _judge(
    samples: dict[str, list[Sample]], settings: Settings
) -> tuple[dict[str, list[Sample]], dict[str, list[Growth]]]:
    kept = {name: judged(each, settings) for name, each in samples.items()}
    return kept, {name: growths(each, settings) for name, each in kept.items()}


def _line(elapsed: float, requests: int, samples: dict[str, list[Sample]]) -> str:
    memory = ", ".join(
        f"{name} {each[-1].memory >> 20} MiB {each[-1].group('requests')} live requests"
        for name, each in samples.items()
    )
    return f"{elapsed:6.0f} s {requests:8} requests: {memory}"
