"""The replicas of one service: their current addresses, their readiness, and the order in which they are tried.

Several URLs may be configured, and each name may have several addresses (`docker compose --scale`, a headless Service),
so names are resolved periodically. A replica that does not answer or is not ready is tried last until it is ready
again; if none is ready, all are tried. A single address is always used, so it is not probed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from tetrapod.generic.metrics.counters import Gauge
from tetrapod.machinery.failure import result_of

log = logging.getLogger(__name__)

PROBE_EVERY: Final = 1.0
RESOLVE_EVERY: Final = 5.0
READY: Final = Gauge(
    "tetrapod_service_replicas",
    "Replicas of a service that this one speaks to, by whether they are ready.",
    ("service", "ready"),
)


class Address(NamedTuple):
    """The address of a replica.

    Attributes:
        host: the IP address, or the path of a Unix socket.
        port: the port; 0 for a Unix socket.
        name: the host in its URL, for which the certificate must be valid.
    """

    host: str
    port: int
    name: str


Probe = Callable[[Address], Awaitable[bool]]
Lookup = Callable[[str, int], Awaitable[list[str]]]


async def look_up(host: str, port: int) -> list[str]:
    """Return all IP addresses of a host name, without duplicates.

    For the path of a Unix socket, the result is the path itself.

    Args:
        host: the host name, or an absolute path.
        port: the port, which does not change the addresses.

    Raises:
        OSError: the lookup failed.
    """
    if host.startswith("/"):
        return [host]
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in infos))


class Replicas:
    """The replicas of one service and whether they are ready.

    Args:
        name: the name of the service in logs and metrics.
        hosts: the hosts and ports of the URLs.
        on_removed: called with each replica that is removed or not ready any more.
        lookup: returns the IP addresses of a host, called with its name and the port.
    """

    def __init__(
        self,
        name: str,
        hosts: Sequence[tuple[str, int]],
        on_removed: Callable[[Address], None],
        lookup: Lookup = look_up,
    ) -> None:
        self.name = name
        self._hosts = tuple(dict.fromkeys(hosts))
        self._on_removed = on_removed
        self._lookup = lookup
        self._ready: dict[Address, bool] = {}
        self._rotation = itertools.count()
        self._resolving: asyncio.Task[None] | None = None
        self._probe_soon = asyncio.Event()

    async def candidates(self) -> list[Address]:
        """Return the replicas in the order in which to try them: those that are ready come first.

        Successive calls begin with different replicas (round robin). The first call looks up the host names. The list
        is empty if no name can be resolved.
        """
        if not self._ready:
            if self._resolving is None or self._resolving.done():
                self._resolving = asyncio.create_task(self.resolve())
            await result_of(self._resolving)
        if len(self._ready) == 1:
            return list(self._ready)
        ready = [address for address, is_ready in self._ready.items() if is_ready]
        not_ready = [address for address, is_ready in self._ready.items() if not is_ready]
        offset = next(self._rotation)
        return [*_rotated(ready, offset), *_rotated(not_ready, offset)]

    def mark_unavailable(self, address: Address) -> None:
        """Mark a replica as not ready, because it cannot be reached or is stopping, and probe soon.

        Do nothing if it is the only one.
        """
        if len(self._ready) > 1 and self._ready.get(address):
            self._mark(address, False)
            self._probe_soon.set()

    async def resolve(self) -> None:
        """Look up all names and replace the replicas. If a lookup fails, the previous addresses of that name are kept.

        New replicas must pass a probe first, unless there is only one.
        """
        resolved: dict[Address, bool] = {}
        for host, port in self._hosts:
            try:
                addresses = [Address(resolved_host, port, host) for resolved_host in await self._lookup(host, port)]
            except OSError as error:
                log.debug("%s: %s cannot be looked up: %s", self.name, host, error)
                addresses = [address for address in self._ready if (address.name, address.port) == (host, port)]
            # A single address is always used; several must first pass a probe.
            resolved |= {address: self._ready.get(address, False) for address in addresses}
        if len(resolved) == 1:
            resolved = dict.fromkeys(resolved, True)
        removed = self._ready.keys() - resolved.keys()
        self._ready = resolved
        self._count()
        for address in removed:
            self._on_removed(address)

    async def follow(self, probe: Probe) -> None:
        """Look up the names every 5 seconds and probe all replicas every second, until cancelled.

        A single replica is not probed.

        Args:
            probe: returns whether the replica at an address is ready.
        """
        loop = asyncio.get_running_loop()
        resolved_at = float("-inf")
        while True:
            if loop.time() - resolved_at >= RESOLVE_EVERY or not any(self._ready.values()):
                await self.resolve()
                resolved_at = loop.time()
            if len(self._ready) > 1:
                await asyncio.gather(*(self._probe(address, probe) for address in self._ready))
            self._probe_soon.clear()
            try:
                async with asyncio.timeout(PROBE_EVERY):
                    await self._probe_soon.wait()
                await asyncio.sleep(PROBE_EVERY / 10)
            except TimeoutError:
                continue

    async def _probe(self, address: Address, probe: Probe) -> None:
        is_ready = await probe(address)
        if self._ready.get(address) not in (None, is_ready):
            self._mark(address, is_ready)

    def _mark(self, address: Address, ready: bool) -> None:
        log.info("%s at %s:%d is %s", self.name, address.host, address.port, "ready" if ready else "not ready")
        self._ready[address] = ready
        self._count()
        if not ready:
            self._on_removed(address)

    def _count(self) -> None:
        ready = sum(self._ready.values())
        READY.set((self.name, "true"), ready)
        READY.set((self.name, "false"), len(self._ready) - ready)


def _rotated(addresses: list[Address], offset: int) -> list[Address]:
    start = offset % len(addresses) if addresses else 0
    return addresses[start:] + addresses[:start]
