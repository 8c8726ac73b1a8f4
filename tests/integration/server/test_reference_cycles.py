"""A closed connection and everything from its requests is freed by reference counting, with nothing left to the cyclic
garbage collector.

Garbage in cycles takes memory until the collector runs, and the collector takes time from requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from chaos.http import Address, Connection
from chaos.worlds import Embedded
from soak import workers
from soak.errors import WRONG
from soak.gate import Gate
from soak.prepared import CONFIG_MAPS, PODS, config_map, prepare
from soak.traffic import Traffic
from soak.worlds import Process, World, flags, world_of
from support.waiting import until

CONNECTIONS: Final = 20
GET: Final = f"GET {CONFIG_MAPS}/present HTTP/1.1\r\nHost: x\r\n\r\n".encode()
POST: Final = (
    f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
).encode()


@dataclass(frozen=True)
class Uncollected:
    """A server without the collector. It writes its garbage to the file `report`."""

    world: World
    report: Path

    @property
    def pid(self) -> int:
        return self.world.processes[0].pid

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def garbage(self) -> dict[str, int]:
        """Return the objects in unreachable cycles by type, and free them."""
        self.report.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        until(self.report.exists, description="the report of garbage")
        counts: dict[str, int] = json.loads(self.report.read_text())
        return counts


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uncollected]:
    directory = tmp_path_factory.mktemp("cycles")
    report = directory / "garbage.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARBAGE_REPORT", str(report))
        embedded = Embedded(directory / "data", launcher=("soak.uncollected",), flags=flags(directory))
        embedded.start()
    try:
        (admin,) = embedded.addresses
        assert embedded.process is not None
        pki = embedded.directory / "pki"
        yield Uncollected(
            world_of((Process("tetrapod", embedded.process.pid, admin),), admin, pki / "ca.crt", pki), report
        )
    finally:
        embedded.close()


async def requests(
    traffic: Traffic,
    address: Address,
    method: str,
    path: str,
    body: object = None,
    media_type: str = "application/json",
) -> None:
    """Send two requests over one connection, and close it."""
    connection = Connection(address, timeout=60)
    for _ in range(2):
        await traffic.ask(connection, method, path, body, media_type)
    connection.close()


async def changes(traffic: Traffic) -> None:
    connection, path = Connection(traffic.world.admin, timeout=60), f"{CONFIG_MAPS}/changing"
    await traffic.ask(connection, "POST", CONFIG_MAPS, config_map("changing"))
    await traffic.ask(connection, "PATCH", path, {"data": {"a": "b"}}, "application/merge-patch+json")
    await traffic.ask(connection, "DELETE", path)
    connection.close()


async def websocket(traffic: Traffic, subresource: str, protocol: str) -> None:
    """Upgrade to WebSocket, read the start of the response, and reset the connection."""
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {protocol}\r\n"
    )
    head = (
        f"GET {PODS}/guarded/{subresource} HTTP/1.1\r\nHost: x\r\n"
        f"{upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert await traffic.raw(traffic.world.admin, head.encode()) == 101


async def rejected(traffic: Traffic) -> None:
    for wrong in WRONG:
        if wrong.every == 1:
            await requests(traffic, traffic.world.admin, *wrong[:4])


KINDS: Final[dict[str, Callable[[Traffic], Awaitable[object]]]] = {
    "requests that are answered": lambda t: requests(t, t.world.admin, "GET", f"{CONFIG_MAPS}/present"),
    "requests without a valid credential": lambda t: requests(t, t.world.cases["invalid token"], "GET", "/api"),
    "requests without rights": lambda t: requests(t, t.world.cases["anonymous"], "GET", CONFIG_MAPS),
    "writes": changes,
    "requests that are rejected": rejected,
    "malformed requests": lambda t: t.raw(t.world.admin, b"nonsense\r\n\r\n"),
    "no request": lambda t: workers.broken_off(t, t.world.admin, b""),
    "half a head": lambda t: workers.broken_off(t, t.world.admin, GET[:20]),
    "half a body": lambda t: workers.broken_off(t, t.world.admin, POST),
    "no TLS": lambda t: workers.broken_off(t, t.world.admin, b"\x16\x03\x01 no handshake", tls=False),
    "no handshake": lambda t: workers.broken_off(t, t.world.admin, b"", tls=False),
    "a certificate of an unknown CA": lambda t: workers.broken_off(t, t.world.unknown, GET, response=True),
    "a watch that is cut": lambda t: workers.watch(t, t.world.admin, f"{CONFIG_MAPS}?watch=1", 0.02),
    "a watch that ends": lambda t: workers.watch(t, t.world.admin, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1", 0.0),
    "an upgrade": lambda t: workers.upgrade(t, t.world.admin),
    "exec over WebSocket": lambda t: websocket(t, "exec?command=ls&stdout=true&container=c", "v5.channel.k8s.io"),
    "port forwarding over WebSocket": lambda t: websocket(t, "portforward?ports=80", "SPDY/3.1+portforward.k8s.io"),
}


async def open_and_close(server: Uncollected, kind: str) -> None:
    """Open connections of a type, after a first one that fills caches, and wait until the server has closed all of
    them.
    """
    async with AsyncExitStack() as stack:
        await prepare(server.world, stack)
        traffic = Traffic(server.world, Gate(), 0.0)
        await KINDS[kind](traffic)
        await asyncio.to_thread(server.garbage)
        files = server.files()
        await asyncio.gather(*(KINDS[kind](traffic) for _ in range(CONNECTIONS)))
    await asyncio.to_thread(lambda: until(lambda: server.files() <= files, description="the end of the connections"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_connection_leaves_no_reference_cycle(server: Uncollected, kind: str) -> None:
    asyncio.run(open_and_close(server, kind))
    garbage = server.garbage()
    assert sum(garbage.values()) < CONNECTIONS, garbage
