"""Samples of a process: live objects by type from its own profile, resident memory and file descriptors from /proc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bench.processes import resident
from chaos.http import Connection
from soak.worlds import Process

_HEAP: Final = "/debug/pprof/heap?debug=2"
WATCHED: Final[Mapping[str, tuple[str, ...]]] = {
    "requests": ("tetrapod.generic.http.request.Request",),
    "frames": ("builtins.frame", "builtins.traceback"),
    "tasks": ("_asyncio.Task", "asyncio.tasks.Task", "builtins.coroutine"),
    "connections": (
        "tetrapod.generic.http.protocol.HttpProtocol",
        "tetrapod.generic.http.http1_exchange.Http1Exchange",
        "tetrapod.generic.http.h2.protocol.Http2Protocol",
        "tetrapod.generic.http.h2.stream.Stream",
        "tetrapod.generic.http.tls._Connection",
        "tetrapod.generic.http.tls._DeferredVerificationConnection",
        "tetrapod.generic.proxy.connection.BackendConnection",
        "tetrapod.generic.proxy.h2.exchange.Http2Exchange",
        "uvloop.loop.TCPTransport",
    ),
}
"""Groups of types that nothing may leave behind."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at one moment, after `requests` requests of the run and `seconds` since its beginning."""

    seconds: float
    requests: int
    memory: int
    files: int
    objects: Mapping[str, int]

    def group(self, name: str) -> int:
        """Return how many objects of a group of `WATCHED` are alive."""
        return sum(self.objects.get(kind, 0) for kind in WATCHED[name])


async def sample(process: Process, seconds: float, requests: int) -> Sample:
    """Sample a process. It runs its garbage collector first; memory is read afterwards."""
    connection = Connection(process.address, timeout=60)
    try:
        answer = await connection.ask("GET", _HEAP)
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{process.name} answered {answer.status} to {_HEAP}: {answer.body[:300]!r}")
    objects = {}
    for line in answer.body.decode().splitlines()[1:]:
        count, _, kind = line.split(maxsplit=2)
        objects[kind] = int(count)
    return Sample(seconds, requests, resident(process.pid), len(os.listdir(f"/proc/{process.pid}/fd")), objects)
