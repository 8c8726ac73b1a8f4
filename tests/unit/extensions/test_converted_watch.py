"""Tests of watches whose events a webhook converts: the end of a watch that fails or falls behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tetrapod.extensions.custom.converted_watch import ConvertedWatch
from tetrapod.generic.storage.cacher.counters import CacheCounters
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.watching import QUEUE, CacheWatch, Fanout
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.status import StatusError

_SECONDS = 5


def event(revision: int) -> WatchEvent:
    raw = b'{"kind":"W","apiVersion":"e.com/v1","metadata":{"name":"w","resourceVersion":"%d"}}' % revision
    return WatchEvent("MODIFIED", StoredEntry.from_served("ns/w", raw, revision), revision)


class _Conversion:
    """A conversion that returns the entries as they are once `released` is set. It records how many each call gets."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.released = asyncio.Event()
        self.calls: list[int] = []

    async def read(self, entries: Sequence[Entry]) -> list[Entry]:
        self.calls.append(len(entries))
        self.called.set()
        await self.released.wait()
        return list(entries)


@pytest.fixture
def inner() -> CacheWatch:
    return CacheWatch(Fanout(lambda: 0, CacheCounters(("e.com", "ws"))), WatchQuery(""), 0)


async def test_a_failed_conversion_ends_a_subscribed_watch(inner: CacheWatch) -> None:
    async def fail(entries: Sequence[Entry]) -> list[Entry]:
        raise StatusError(500, "", "the webhook is down")

    sent: list[WatchEvent] = []
    watch = ConvertedWatch(inner, fail, Predicate())
    watch.subscribe(sent.extend)
    inner.push([event(1)])
    await asyncio.wait_for(watch.ended(), _SECONDS)
    assert [e.type for e in sent] == ["ERROR"]
    assert sent[0].status is not None
    assert "the webhook is down" in sent[0].status["message"]


async def test_a_failed_sink_ends_a_subscribed_watch(inner: CacheWatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(events: Sequence[WatchEvent]) -> None:
        raise ValueError("no client")

    conversion = _Conversion()
    conversion.released.set()
    watch = ConvertedWatch(inner, conversion.read, Predicate())
    watch.subscribe(fail)
    inner.push([event(1)])
    await asyncio.wait_for(watch.ended(), _SECONDS)
    assert "no client" in caplog.text


async def test_a_subscribed_watch_ends_if_conversion_is_too_slow(inner: CacheWatch) -> None:
    conversion = _Conversion()
    watch = ConvertedWatch(inner, conversion.read, Predicate())
    watch.subscribe(lambda events: None)
    for revision in range(1, QUEUE + 3):
        inner.push([event(revision)])
        await asyncio.sleep(0)
    assert inner.closed
    watch.close()


async def test_events_that_wait_for_a_slow_conversion_are_converted_together(inner: CacheWatch) -> None:
    conversion = _Conversion()
    sent: asyncio.Queue[WatchEvent] = asyncio.Queue()
    watch = ConvertedWatch(inner, conversion.read, Predicate())

    def send(events: Sequence[WatchEvent]) -> None:
        for each in events:
            sent.put_nowait(each)

    watch.subscribe(send)
    inner.push([event(1)])
    await asyncio.wait_for(conversion.called.wait(), _SECONDS)
    inner.push([event(2)])
    inner.push([event(3)])
    conversion.released.set()
    async with asyncio.timeout(_SECONDS):
        assert [(await sent.get()).revision for _ in range(3)] == [1, 2, 3]
    assert conversion.calls == [1, 2]
    watch.close()
