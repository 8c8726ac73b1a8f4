"""A run: start a server over a store of many small objects, and list them."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench import processes
from bench.targets import TOKEN, Embedded, OverEtcd, Target
from scale.results import Figures, figures
from support.large_store import fill
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.sqlite import SqliteBackend

PER_NAMESPACE: Final = 1000
_READY_WITHIN: Final = 600.0
_PATH: Final = "/api/v1/configmaps"
_PIECE: Final = 1 << 20
_MARK: Final = b'"uid":'
"""Each item has it once."""
_CONTEXT: Final = ssl._create_unverified_context()


def run(key: str, target: Target, objects: int, _: Path) -> Figures:
    """Fill the store, start the server, and return what was measured.

    Raises:
        NotStarted: the server was not ready within ten minutes.
        OSError: it did not answer.
    """
    target.fresh()
    target.start()
    processes.settle(target.pids)
    empty = sum(map(processes.resident, target.pids))
    target.stop()
    begun = time.monotonic()
    asyncio.run(_fill(target, objects))
    filled = time.monotonic() - begun
    target.ready_within = _READY_WITHIN
    begun = time.monotonic()
    ready = target.start()
    _get(target, f"{_PATH}?limit=500")
    page = time.monotonic() - begun
    count, size = _get(target, f"{_PATH}?resourceVersion=0")
    cached = time.monotonic() - begun
    if count < objects:
        raise OSError(f"the list has {count} of {objects} objects")
    processes.settle(target.pids, timeout=60)
    memory = sum(map(processes.resident, target.pids))
    begun = time.monotonic()
    _get(target, f"{_PATH}?resourceVersion=0")
    listed = time.monotonic() - begun
    begun = time.monotonic()
    _get(target, "/api/v1/namespaces/scale-0/configmaps?limit=500")
    namespace = time.monotonic() - begun
    return figures(
        "store",
        objects,
        key,
        filled=filled,
        ready=ready,
        page=page,
        cached=cached,
        listed=listed,
        listed_bytes=size,
        namespace=namespace,
        memory=memory,
        peak=sum(map(processes.peak_resident, target.pids)),
        empty=empty,
    )


async def _fill(target: Target, objects: int) -> None:
    async with store_of(target) as backend:
        await fill(backend, objects, max(1, objects // PER_NAMESPACE))


@asynccontextmanager
async def store_of(target: Target) -> AsyncIterator[Backend]:
    """Open the store of a stopped server."""
    if isinstance(target, Embedded):
        backend: Backend = SqliteBackend(target.database, durable=False)
    else:
        assert isinstance(target, OverEtcd)
        backend = EtcdBackend([target.etcd_url], compaction_seconds=0)
    try:
        yield backend
    finally:
        await backend.close()


def _get(target: Target, path: str) -> tuple[int, int]:
    """Read a list, and return how many items and bytes it has."""
    request = urllib.request.Request(f"{target.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    count = size = 0
    end = b""  # of what was read; the mark may be divided
    with urllib.request.urlopen(request, timeout=600, context=_CONTEXT) as answer:
        while piece := answer.read(_PIECE):
            size += len(piece)
            count += (end + piece).count(_MARK)
            end = (end + piece)[1 - len(_MARK) :]
    return count, size
