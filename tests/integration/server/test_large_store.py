"""Start with many stored objects: what it waits for, how it loads the event loop, and how much memory it takes."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.large_store import FOLDER, fill
from support.server import Server, free_port, running
from support.waiting import eventually, until
from tetrapod.apps.embedded import Embedded
from tetrapod.apps.options.options import Options
from tetrapod.apps.options.serving import ServingFlags
from tetrapod.generic.client import reflector
from tetrapod.generic.storage import metrics as storage_metrics
from tetrapod.generic.storage.backend import Backend, Range
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.storage.wrappers import ForwardingBackend
from tetrapod.machinery.gvk import GroupVersionResource

COUNT = 20_000
BYTES_PER_OBJECT = 3_000
STEP_SECONDS = 0.025
"""CPU time. Measured: 4 ms. It was 40 ms with the garbage collector's list decoded in one step, and 200 ms with objects
kept as dictionaries.
"""
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")


class HeldLists(ForwardingBackend):
    """A backend that lists ConfigMaps only after `go` is set. Other calls are not delayed."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.go = asyncio.Event()
        self.get, self.put_if, self.delete_if, self.watch, self.close = (
            inner.get,
            inner.put_if,
            inner.delete_if,
            inner.watch,
            inner.close,
        )

    async def range(self, start: str, end: str, **how: Any) -> Range:
        if start.startswith(FOLDER):
            await self.go.wait()
        return await self._inner.range(start, end, **how)


@asynccontextmanager
async def embedded(directory: Path, backend: Backend) -> AsyncIterator[Embedded]:
    server = Embedded(
        Options(data_dir=directory, serving=ServingFlags(bind_address="127.0.0.1", secure_port=free_port())), backend
    )
    try:
        yield server
    finally:
        await server.stop()


def config_maps_are_known(text: str) -> bool:
    """Report whether the watch cache and the garbage collector have all ConfigMaps, by the metrics of a process with
    one server.
    """
    lines = text.splitlines()
    cached = [line for line in lines if line.startswith('apiserver_resource_objects{group="",resource="configmaps"}')]
    followed = [
        line
        for line in lines
        if line.startswith("informer_store_resource_version{") and 'resource="configmaps"' in line
    ]
    return bool(cached and followed)


class Followers:
    """Return the watch caches and informers created since: other tests in this process may have left servers
    running.
    """

    def __init__(self) -> None:
        self._earlier = weakref.WeakSet[object]([*storage_metrics._cachers, *reflector._reflectors])

    async def know_config_maps(self) -> bool:
        """Report whether the watch cache and the garbage collector have all ConfigMaps."""
        cachers = [
            each
            for each in storage_metrics._cachers
            if each not in self._earlier and each.config.prefix == "configmaps"
        ]
        followers = [
            each for each in reflector._reflectors if each not in self._earlier and each.gvr.resource == "configmaps"
        ]
        return any(each.statistics() is not None for each in cachers) and any(each.version for each in followers)


@contextmanager
def longest_step() -> Iterator[list[float]]:
    """Measure the CPU time of each step of asyncio's loop in this thread.

    The list holds the longest step of other tasks than the caller.
    """
    run, caller, longest = asyncio.Handle._run, asyncio.current_task(), [0.0]

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        if getattr(getattr(handle, "_callback", None), "__self__", None) is not caller:
            longest[0] = max(longest[0], time.thread_time() - began)

    gc.collect()
    gc.freeze()  # as a ready server does: Python's cyclic collector ignores objects of earlier tests
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", measured)
            yield longest
    finally:
        gc.unfreeze()


async def test_server_is_ready_before_a_cache_that_nothing_needs_is_loaded(tmp_path: Path) -> None:
    store = SqliteBackend()
    await fill(store, COUNT)
    held, followers = HeldLists(store), Followers()
    async with embedded(tmp_path, held) as server:
        await server.start()
        assert await server.client.raw("GET", "/readyz") == (200, b"ok")
        assert not await followers.know_config_maps()
        found = await server.client.get(CONFIG_MAPS, "scale-0", "config-0000007")
        assert found["data"]["a"] == "b"
        with longest_step() as longest:
            held.go.set()
            await eventually(followers.know_config_maps, description="loading")
        assert longest[0] < STEP_SECONDS, f"a step of the event loop took {longest[0]:.3f} s of CPU time"
        listed = await server.client.list(CONFIG_MAPS, "scale-0")
        assert sum(item["metadata"]["name"].startswith("config-") for item in listed["items"]) == COUNT


@pytest.mark.long
def test_small_object_takes_at_most_3_kb_of_memory(tmp_path: Path) -> None:
    async def prepared() -> None:
        store = SqliteBackend(tmp_path / "large" / "tetrapod.db", durable=False)
        await fill(store, COUNT)
        await store.close()

    (tmp_path / "large").mkdir()
    asyncio.run(prepared())
    with running(tmp_path / "empty") as server:
        empty = resident(server)
    with running(tmp_path / "large") as server:
        large = resident(server)
    assert (large - empty) / COUNT < BYTES_PER_OBJECT


def resident(server: Server) -> float:
    """Return the memory of a server in bytes, once it has loaded the ConfigMaps."""
    connection = server.connect()

    def scraped() -> str:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    text = until(scraped, config_maps_are_known, description="loading")
    connection.close()
    return next(
        float(line.split()[1]) for line in text.splitlines() if line.startswith("process_resident_memory_bytes ")
    )
