"""A thousand watchers during an outage of etcd: none lists more than once again, and none misses or repeats an
event.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.checker.watches import check_watches
from chaos.clients import Client
from chaos.history import History, Outcome
from chaos.http import Address
from chaos.kinds import CONFIG_MAPS
from chaos.run import ensure_namespace, running
from chaos.watchers import Watcher
from chaos.witness import Witness
from chaos.worlds import address_of
from support.etcd import Etcd, running_etcd
from support.server import running as running_server

WATCHERS = 1000
WRITES = 10
TOGETHER = 50  # watches that connect at the same time

pytestmark = pytest.mark.long


@contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * WATCHERS)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def write(address: Address, history: History, name: str) -> int:
    """Retry until it succeeds, and return the revision."""
    client = Client(name, [address], history, timeout=15)
    try:
        while True:
            written = await client.create(CONFIG_MAPS, name)
            if written.outcome is Outcome.DONE:
                return written.revision
            if written.status == 409:  # the response was lost, not the write
                seen = (await client.get(CONFIG_MAPS, name)).seen
                if seen is not None:
                    return seen.revision
            await asyncio.sleep(0.1)
    finally:
        client.close()


async def through_an_outage(address: Address, etcd: Etcd) -> list[int]:
    """Return how many times each has listed again."""
    history, witness = History(), Witness(etcd)
    async with running(witness.work()):
        await ensure_namespace(address)
        since = await write(address, history, "before")
        first = await write(address, history, "first")
        watchers = [
            Watcher(f"w{n}", CONFIG_MAPS, [address], history, 1, lasts=(300, 600), since=since) for n in range(WATCHERS)
        ]
        beginning: list[asyncio.Task[None]] = []
        try:
            for start in range(0, WATCHERS, TOGETHER):
                group = watchers[start : start + TOGETHER]
                beginning += [asyncio.create_task(watcher.work()) for watcher in group]
                await asyncio.gather(*(watcher.until(first) for watcher in group))
            etcd.stop()
            outage = asyncio.create_task(write(address, history, "meanwhile"))
            await asyncio.sleep(2)  # the duration of the outage, in which no event may arrive
            await asyncio.to_thread(etcd.start)
            await outage
            last = [await write(address, history, f"after-{number}") for number in range(WRITES)][-1]
            async with asyncio.timeout(120):
                await asyncio.gather(*(watcher.until(last) for watcher in watchers))
        finally:
            for task in beginning:
                task.cancel()
            await asyncio.gather(*beginning, return_exceptions=True)
        truth = await witness.truth()
    assert check_watches(history.watches, truth) == []
    return [watcher.relists for watcher in watchers]


@pytest.mark.timeout(300)
def test_each_watcher_lists_at_most_once_again_after_an_outage(tmp_path: Path) -> None:
    with (
        running_etcd(tmp_path / "etcd") as etcd,
        many_files(),
        running_server(tmp_path / "up", f"--etcd-servers={etcd.url}") as server,
    ):
        relists = asyncio.run(through_an_outage(address_of(server.url, server.kubeconfig), etcd))
    assert len(relists) == WATCHERS
    assert max(relists) <= 1, sum(relists)
