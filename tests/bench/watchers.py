"""The cost of one event to one watcher: 200 watches of one collection, and one writer."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

from bench import processes
from bench.client import Client, Rejected
from bench.objects import WATCHED

WATCHERS = 200
_PATH = f"/api/v1/namespaces/{WATCHED}/configmaps"
_STAMP = re.compile(rb"~(\d+)")


@dataclass(frozen=True)
class FanOut:
    """A result. `cpu` is in seconds per event and watcher, including the write."""

    cpu: float
    rate: float
    p50_ms: float
    p99_ms: float


class _Watcher(asyncio.Protocol):
    """A protocol that counts `~`, which every event contains exactly once.

    The first watches also record the time of each event.
    """

    def __init__(self, hub: _Hub, head: bytes, sampled: bool) -> None:
        self._hub, self._head, self._sampled = hub, head, sampled
        self._tail = b""
        self.open = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._head)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self.open.done():
            if b"\r\n\r\n" not in (head := self._tail + data):
                self._tail = head
                return
            self._tail = b""
            self.open.set_result(head.split(b"\r\n", 1)[0])
        self._hub.arrived(data.count(b"~"))
        if self._sampled:
            data = self._tail + data
            now, end = time.monotonic_ns(), 0
            for match in _STAMP.finditer(data):
                if match.end() < len(data):
                    self._hub.delays.append(now - int(match[1]))
                    end = match.end()
            self._tail = data[end:][-64:]

    def connection_lost(self, exc: Exception | None) -> None:
        self._hub.lost += 1
        if not self.open.done():
            self.open.set_exception(exc or ConnectionResetError())


class _Hub:
    def __init__(self) -> None:
        self.count = 0
        self.wanted = -1
        self.lost = 0
        self.delays: list[int] = []
        self.all = asyncio.Event()

    def arrived(self, count: int) -> None:
        self.count += count
        if 0 <= self.wanted <= self.count:
            self.all.set()

    async def wait(self, wanted: int) -> None:
        self.wanted = wanted
        if self.count < wanted:
            await asyncio.wait_for(self.all.wait(), 60)
        self.all.clear()
        self.wanted = -1


async def measure(client: Client, pids: list[int], events: int, watchers: int = WATCHERS) -> FanOut:
    """Send `events` changes of one ConfigMap to all watchers."""
    await client.create(
        _PATH, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "watched"}, "data": {"v": "first"}}
    )
    version = (await client.request("GET", _PATH)).object()["metadata"]["resourceVersion"]
    hub = _Hub()
    opened = [await _open(client, hub, version, sampled=i < 4) for i in range(watchers)]
    try:
        await _write(client, 20)
        await hub.wait(20 * watchers)
        hub.delays.clear()
        before, begun = processes.cpu_of(pids), time.monotonic()
        await _write(client, events)
        await hub.wait((20 + events) * watchers)
        seconds, cpu = time.monotonic() - begun, processes.cpu_of(pids) - before
        if hub.lost:
            raise Rejected(f"{hub.lost} watches ended")
    finally:
        for watcher in opened:
            watcher.transport.abort()  # type: ignore[attr-defined]
    delays = sorted(hub.delays) or [0]
    total = events * watchers
    return FanOut(cpu / total, total / seconds, delays[len(delays) // 2] / 1e6, delays[len(delays) * 99 // 100] / 1e6)


async def _open(client: Client, hub: _Hub, version: str, *, sampled: bool) -> _Watcher:
    head = (
        f"GET {_PATH}?watch=true&resourceVersion={version} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
        f"Authorization: Bearer {client.token}\r\n\r\n"
    ).encode()
    loop = asyncio.get_running_loop()
    _, watcher = await loop.create_connection(
        lambda: _Watcher(hub, head, sampled), client.host, client.port, ssl=client.context
    )
    status = await asyncio.wait_for(watcher.open, 30)
    if b" 200 " not in status:
        raise Rejected(f"watch: {status.decode()}")
    return watcher


async def _write(client: Client, count: int) -> None:
    """Write one change after the other over one connection."""
    connection = await client.connection()
    try:
        for _ in range(count):
            body = b'{"data":{"v":"~%d"}}' % time.monotonic_ns()
            answer = await connection.request("PATCH", f"{_PATH}/watched", body, "application/merge-patch+json")
            if answer.status != 200:
                raise Rejected(f"PATCH: {answer.status} {answer.body[:200].decode(errors='replace')}")
    finally:
        connection.close()
