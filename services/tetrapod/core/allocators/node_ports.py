"""Node ports: one stored object holds the set that is taken, changed by compare-and-swap, exact under several replicas.

Upstream: pkg/registry/core/service/portallocator, kept at /registry/ranges/servicenodeports as a RangeAllocation.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, TypeAlias

from tetrapod.core.allocators import metrics
from tetrapod.generic.storage.interface import Entry, ResourceStorage, StorageConfig, StorageFactory, Updated
from tetrapod.machinery.gvk import Object

KEY: Final = "servicenodeports"
_Change: TypeAlias = Callable[[int], int]


class PortError(Exception):
    """Why a port cannot be had."""


class NodePorts:
    def __init__(self, ports: str, storages: StorageFactory) -> None:
        """`ports` is `30000-32767`."""
        low, _, high = ports.partition("-")
        self.low, self.high = int(low), int(high or low)
        self.range = ports
        self._storage: ResourceStorage = storages.resource(StorageConfig("ranges", "v1", "RangeAllocation", namespaced=False))

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def _reserved(self) -> int:
        """How many at the beginning are given out last."""
        return 0 if self.size <= 16 else max(16, min(self.size // 32, 128))

    async def take(self, port: int) -> None:
        """
        Raises:
            PortError: outside of the range, or taken.
        """
        if not self.low <= port <= self.high:
            metrics.PORT_ERRORS.add((metrics.STATIC,))
            raise PortError(f"provided port is not in the valid range. The range of valid ports is {self.range}")

        def claim(taken: int) -> int:
            if taken >> (port - self.low) & 1:
                raise PortError("provided port is already allocated")
            return taken | 1 << (port - self.low)

        await self._allocate(claim, metrics.STATIC)

    async def take_any(self) -> int:
        """A free port, from a random place on; those that users rather choose themselves come last (upstream: calculateRangeOffset).

        Raises:
            PortError: none is left.
        """
        chosen = 0

        def claim(taken: int) -> int:
            nonlocal chosen
            for places in (range(self._reserved, self.size), range(self._reserved)):
                first = random.choice(places) if places else 0
                for place in chain(range(first, places.stop), range(places.start, first)):
                    if not taken >> place & 1:
                        chosen = self.low + place
                        return taken | self._mask((chosen,))
            raise PortError("range is full")

        await self._allocate(claim, metrics.DYNAMIC)
        return chosen

    async def _allocate(self, claim: _Change, scope: str) -> None:
        try:
            await self._change(claim)
        except PortError:
            metrics.PORT_ERRORS.add((scope,))
            raise
        metrics.PORT_ALLOCATIONS.add((scope,))

    async def release(self, ports: list[int]) -> None:
        if mask := self._mask(ports):
            await self._change(lambda taken: taken & ~mask)

    async def taken(self) -> set[int]:
        entry = await self._storage.get(KEY)
        bits = self._bits(entry.peek() if entry else None)
        self._tell(bits)
        return {self.low + i for i in range(self.size) if bits >> i & 1}

    async def correct(self, add: set[int], remove: set[int]) -> None:
        """Make these taken, and those free (repair)."""
        wanted, free = self._mask(add), self._mask(remove)
        await self._change(lambda taken: (taken | wanted) & ~free)

    def _mask(self, ports: Iterable[int]) -> int:
        return sum(1 << (port - self.low) for port in set(ports) if self.low <= port <= self.high)

    async def _change(self, change: _Change) -> None:
        async def attempt(current: Object | None, _: Entry | None) -> Updated | None:
            before = self._bits(current)
            after = change(before)
            return None if after == before and current is not None else Updated(self._object(after))

        entry = await self._storage.guaranteed_update(KEY, attempt, allow_absent=True)
        self._tell(self._bits(entry.peek()))

    def _tell(self, bits: int) -> None:
        metrics.PORTS_TAKEN.set((), bits.bit_count())
        metrics.PORTS_FREE.set((), self.size - bits.bit_count())

    def _object(self, bits: int) -> Object:
        data = bits.to_bytes((self.size + 7) // 8, "big").lstrip(b"\0")
        return {
            "kind": "RangeAllocation",
            "apiVersion": "v1",
            "metadata": {"name": KEY},
            "range": self.range,
            "data": base64.b64encode(data).decode(),
        }

    def _bits(self, obj: Object | None) -> int:
        """The bitmap, a big-endian integer as Go's big.Int writes it; ports of a former range that are in ours stay taken."""
        bits = int.from_bytes(base64.b64decode((obj or {}).get("data") or ""), "big")
        former = int(((obj or {}).get("range") or self.range).partition("-")[0])
        bits = bits << (former - self.low) if former >= self.low else bits >> (self.low - former)
        return bits & ((1 << self.size) - 1)
