"""The comparison of a watch cache with the store: its metric, and what follows from a difference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from integration.storage.objects import PODS, create, names, setting
from support.https_client import HttpsClient
from support.waiting import eventually
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.storage.backend import Backend, BackendWatch, Range, WatchBatch
from tetrapod.generic.storage.cacher import Cacher, consistency
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.generic.storage.wrappers import ForwardingBackend
from tetrapod.testing import Server


class Losing(ForwardingBackend):
    """A backend whose watches lose the events of all keys that contain `lost`, and which records its reads."""

    def __init__(self, inner: Backend, lost: str = "") -> None:
        super().__init__(inner)
        self.lost = lost
        self.pages: list[Range] = []
        self.get, self.put_if, self.delete_if = inner.get, inner.put_if, inner.delete_if

    async def range(self, start: str, end: str, **how: Any) -> Range:
        page = await self._inner.range(start, end, **how)
        self.pages.append(page)
        return page

    @asynccontextmanager
    async def watch(self, *span: Any, **how: Any) -> AsyncIterator[BackendWatch]:
        async with self._inner.watch(*span, **how) as watch:
            yield _LosingWatch(watch, self)

    async def close(self) -> None:
        """The fixture closes the inner backend."""


class _LosingWatch:
    def __init__(self, inner: BackendWatch, owner: Losing) -> None:
        self._inner, self._owner = inner, owner

    def __aiter__(self) -> _LosingWatch:
        return self

    def _kept(self, batch: WatchBatch) -> WatchBatch:
        lost = self._owner.lost
        return batch._replace(events=[event for event in batch.events if not lost or lost not in event.key])

    async def __anext__(self) -> WatchBatch:
        return self._kept(await self._inner.__anext__())

    def next_if_ready(self) -> WatchBatch | None:
        batch = self._inner.next_if_ready()
        return None if batch is None else self._kept(batch)

    def request_progress(self) -> None:
        self._inner.request_progress()

    @property
    def progress(self) -> int:
        return self._inner.progress


@pytest.fixture
def period(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compare every few hundredths of a second, in pages of two keys."""
    monkeypatch.setattr(consistency, "PERIOD", 0.02)
    monkeypatch.setattr(consistency, "PAGE", 2)
    yield
    feature_gates.configure([])


def checks(status: str) -> float:
    return consistency._CHECKS.values.get(("", "pods", status), 0)


async def counted(status: str) -> None:
    """Wait for two more comparisons with this result: at least the second one began after the call."""
    wanted = checks(status) + 2

    async def current() -> float:
        return checks(status)

    await eventually(current, lambda count: count >= wanted)


async def test_a_cache_under_writes_equals_the_store(with_history: Backend, root: str, period: None) -> None:
    storage = Cacher(with_history, PODS, root=root)
    failed, errors = checks("failure"), checks("error")
    await storage.ready()
    for number in range(20):
        await create(storage, *(f"a/{number}-{n}" for n in range(5)))
        await storage.guaranteed_update(f"a/{number}-1", setting(n="1"))
        await storage.delete(f"a/{number}-3")
    await with_history.put_if(f"{root}/nodes/a", b"{}", 0)  # the last write changes another resource
    await counted("success")
    assert (checks("failure"), checks("error")) == (failed, errors)
    await storage.close()


async def test_a_cache_that_lost_an_event_differs_until_it_has_the_object_again(
    with_history: Backend, root: str, period: None, caplog: pytest.LogCaptureFixture
) -> None:
    backend = with_history
    losing = Losing(backend)
    storage = Cacher(losing, PODS, root=root)
    await storage.ready()
    await create(storage, "a/1", "a/2", "a/3")
    listed = await storage.list(ListQuery())
    losing.lost = "a/2"
    await backend.put_if(f"{root}/pods/a/2", (await _stored(backend, f"{root}/pods/a/2")), listed.entries[1].revision)
    await counted("failure")
    assert "the watch cache differs from the store at revision" in caplog.text and "pods/a/2 is cached" in caplog.text
    losing.pages.clear()
    exact = ListQuery(resource_version=listed.resource_version, match="Exact")
    assert names((await storage.list(exact)).entries) == ["a/1", "a/2", "a/3"]
    assert any(kv.value for page in losing.pages for kv in page.kvs), "the store answers lists at former revisions"
    losing.lost = ""
    await storage.guaranteed_update("a/2", setting(n="1"))
    await counted("success")
    losing.pages.clear()
    assert len((await storage.list(exact)).entries) == 3
    assert not any(kv.value for page in losing.pages for kv in page.kvs)
    await storage.close()


async def _stored(backend: Backend, key: str) -> bytes:
    kv = await backend.get(key)
    assert kv is not None
    return kv.value


async def test_nothing_is_compared_while_a_value_cannot_be_decoded(
    with_history: Backend, root: str, period: None
) -> None:
    backend = with_history
    storage = Cacher(backend, PODS, root=root)
    await storage.ready()
    await create(storage, "a/1")
    await backend.put_if(f"{root}/pods/a/broken", b"not an object", 0)
    failed = checks("failure")
    await counted("error")
    await storage.delete_unreadable("a/broken", dry_run=False)
    await counted("success")
    assert checks("failure") == failed
    await storage.close()


async def test_nothing_is_compared_if_the_gate_is_off(root: str, backend: Backend, period: None) -> None:
    feature_gates.configure(["DetectCacheInconsistency=false"])
    losing = Losing(backend)
    storage = Cacher(losing, PODS, root=root)
    await storage.ready()
    losing.pages.clear()
    await asyncio.sleep(0.2)
    assert not losing.pages
    await storage.close()


async def test_the_metrics_of_a_server_count_the_comparisons(period: None) -> None:
    sample = 'apiserver_storage_consistency_checks_total{group="",resource="configmaps",status="success"}'
    text = await asyncio.to_thread(_metrics_with, sample)
    assert 'resource="configmaps",status="failure"' not in text


def _metrics_with(sample: str) -> str:
    """Return the metrics of a new server as soon as they have a sample."""
    with Server() as server:
        client = HttpsClient(server.kubeconfig)
        return str(client.until(lambda reply: sample in str(reply.body), "GET", "/metrics").body)
