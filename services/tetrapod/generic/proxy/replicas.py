"""`Replicas`: where the replicas of one service are now, which of them are ready, and whose turn it is.

Several URLs may be given, and each name may have several addresses (`docker compose --scale`, a headless Service); names are looked up
again and again. A replica that does not answer, or says that it is not ready, is left out until it says that it is; where none is
ready all are tried, since somebody may answer all the same. Of a single address there is no choice, and nothing is asked.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from tetrapod.generic import metrics

log = logging.getLogger(__name__)

PROBE_EVERY: Final = 1.0
RESOLVE_EVERY: Final = 5.0
READY: Final = metrics.Gauge(
    "tetrapod_service_replicas", "Replicas of a service that this one speaks to, by whether they are ready.", ("service", "ready")
)


class Address(NamedTuple):
    """`name` is what the URL says: the certificate must be good for it."""

    host: str
    port: int
    name: str


Probe = Callable[[Address], Awaitable[bool]]
Lookup = Callable[[str, int], Awaitable[list[str]]]


async def look_up(host: str, port: int) -> list[str]:
    """All addresses of a name. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class Replicas:
    """`left` is told of every address that is not to be used any more."""

    def __init__(self, name: str, hosts: Sequence[tuple[str, int]], left: Callable[[Address], None], lookup: Lookup = look_up) -> None:
        self.name = name
        self._hosts = tuple(dict.fromkeys(hosts))
        self._left = left
        self._lookup = lookup
        self._ready: dict[Address, bool] = {}
        self._turn = itertools.count()
        self._looking: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()

    async def candidates(self) -> list[Address]:
        """In the order to try them in; empty where no name is known (any more)."""
        if not self._ready:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self.resolve())
            await asyncio.shield(self._looking)
        if len(self._ready) == 1:
            return list(self._ready)
        ready = [address for address, good in self._ready.items() if good]
        others = [address for address, good in self._ready.items() if not good]
        turn = next(self._turn)
        return [*_rotated(ready, turn), *_rotated(others, turn)]

    def refused(self, address: Address) -> None:
        """It cannot be reached, or goes: others first, until it says that it is ready."""
        if len(self._ready) > 1 and self._ready.get(address):
            self._mark(address, False)
            self._soon.set()

    async def resolve(self) -> None:
        """Look the names up; what cannot be looked up now stays as it was."""
        found: dict[Address, bool] = {}
        for host, port in self._hosts:
            try:
                addresses = [Address(one, port, host) for one in await self._lookup(host, port)]
            except OSError as error:
                log.debug("%s: %s cannot be looked up: %s", self.name, host, error)
                addresses = [address for address in self._ready if (address.name, address.port) == (host, port)]
            # Alone, an address is as good as ever; beside others it has yet to say so.
            found |= {address: self._ready.get(address, False) for address in addresses}
        if len(found) == 1:
            found = dict.fromkeys(found, True)
        gone = self._ready.keys() - found.keys()
        self._ready = found
        self._count()
        for address in gone:
            self._left(address)

    async def follow(self, probe: Probe) -> None:
        """Keep both up to date, until cancelled."""
        loop = asyncio.get_running_loop()
        resolved_at = float("-inf")
        while True:
            if loop.time() - resolved_at >= RESOLVE_EVERY or not any(self._ready.values()):
                await self.resolve()
                resolved_at = loop.time()
            if len(self._ready) > 1:
                await asyncio.gather(*(self._look(address, probe) for address in self._ready))
            self._soon.clear()
            try:
                async with asyncio.timeout(PROBE_EVERY):
                    await self._soon.wait()
                await asyncio.sleep(PROBE_EVERY / 10)
            except TimeoutError:
                continue

    async def _look(self, address: Address, probe: Probe) -> None:
        good = await probe(address)
        if self._ready.get(address) not in (None, good):
            self._mark(address, good)

    def _mark(self, address: Address, ready: bool) -> None:
        log.info("%s at %s:%d is %s", self.name, address.host, address.port, "ready" if ready else "not ready")
        self._ready[address] = ready
        self._count()
        if not ready:
            self._left(address)

    def _count(self) -> None:
        ready = sum(self._ready.values())
        READY.set((self.name, "true"), ready)
        READY.set((self.name, "false"), len(self._ready) - ready)


def _rotated(addresses: list[Address], turn: int) -> list[Address]:
    at = turn % len(addresses) if addresses else 0
    return addresses[at:] + addresses[:at]
