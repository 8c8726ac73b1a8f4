"""The allocator of node ports.

One stored object holds the allocated ports. It is updated by compare-and-swap, so it is exact with several replicas.
Upstream: pkg/registry/core/service/portallocator, stored at /registry/ranges/servicenodeports as a RangeAllocation.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, TypeAlias

from tetrapod.core.allocators import metrics
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import ResourceStorage, StorageFactory
from tetrapod.generic.storage.writes import Updated
from tetrapod.machinery.gvk import Object

KEY: Final = "servicenodeports"
_Change: TypeAlias = Callable[[int], int]


class PortError(Exception):
    """The error for a port that cannot be allocated. Its text is the reason, in upstream's words."""


class NodePorts:
    """The allocator of node ports.

    Args:
        ports: the range, such as "30000-32767".
        storages: the factory that creates the storage of the RangeAllocation.
    """

    def __init__(self, ports: str, storages: StorageFactory) -> None:
        low, _, high = ports.partition("-")
        self.low, self.high = int(low), int(high or low)
        self.range = ports
        self._storage: ResourceStorage = storages.resource(
            StorageConfig("ranges", "v1", "RangeAllocation", namespaced=False)
        )

    @property
    def size(self) -> int:
        """The number of ports in the range."""
        return self.high - self.low + 1

    @property
    def _reserved(self) -> int:
        """The number of ports at the beginning of the range that `take_any` uses only when all others are allocated."""
        return 0 if self.size <= 16 else max(16, min(self.size // 32, 128))

    async def take(self, port: int) -> None:
        """Allocate this port.

        Raises:
            PortError: the port is out of range or allocated.
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
        """Allocate a free port and return it. The search starts at a random port.

        The ports at the beginning of the range are allocated last, so that they stay free for users who request a port.

        Upstream: calculateRangeOffset.

        Raises:
            PortError: no port is free.
        """
        chosen = 0

        def claim(taken: int) -> int:
            nonlocal chosen
            for offsets in (range(self._reserved, self.size), range(self._reserved)):
                start = random.choice(offsets) if offsets else 0
                for offset in chain(range(start, offsets.stop), range(offsets.start, start)):
                    if not taken >> offset & 1:
                        chosen = self.low + offset
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
        """Release the ports. Those that are free or out of range are ignored.

        Raises:
            Unavailable: the store does not answer.
        """
        if mask := self._mask(ports):
            await self._change(lambda taken: taken & ~mask)

    async def taken(self) -> set[int]:
        """Return the allocated ports, by a consistent read.

        Raises:
            Unavailable: the store does not answer.
        """
        entry = await self._storage.get(KEY)
        bits = self._bits(entry.peek() if entry else None)
        self._set_gauges(bits)
        return {self.low + i for i in range(self.size) if bits >> i & 1}

    async def correct(self, add: set[int], remove: set[int]) -> None:
        """Allocate the ports in `add` and release those in `remove`, in one write.

        Ports out of the range are ignored, and so are ports that are already allocated or free.

        Raises:
            Unavailable: the store does not answer.
        """
        add_mask, remove_mask = self._mask(add), self._mask(remove)
        await self._change(lambda taken: (taken | add_mask) & ~remove_mask)

    def _mask(self, ports: Iterable[int]) -> int:
        return sum(1 << (port - self.low) for port in set(ports) if self.low <= port <= self.high)

    async def _change(self, change: _Change) -> None:
        """Replace the stored bitmap of allocated ports (bit 0 is the first port) by compare-and-swap.

        Nothing is written if the bitmap is stored already and does not change.

        Args:
            change: gets the stored bitmap (0 before the first write) and returns the new one. It is called again after
                a conflict, and may raise to cancel the write.

        Raises:
            Exception: whatever `change` raised.
            Unavailable: the store does not answer.
        """

        async def attempt(current: Object | None, _: Entry | None) -> Updated | None:
            old_bits = self._bits(current)
            new_bits = change(old_bits)
            return None if new_bits == old_bits and current is not None else Updated(self._object(new_bits))

        entry = await self._storage.guaranteed_update(KEY, attempt, allow_absent=True)
        self._set_gauges(self._bits(entry.peek()))

    def _set_gauges(self, bits: int) -> None:
        """Set the gauges of allocated and free ports from a bitmap of the allocated ones."""
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
        """Return the allocated ports of a RangeAllocation as a bitmap (bit 0 is the first port of the current range).

        If the object was stored for another port range, the ports in the current range stay allocated and others are
        dropped.

        Args:
            obj: the RangeAllocation, whose `data` is a big-endian integer as Go's big.Int writes it; None gives 0.
        """
        bits = int.from_bytes(base64.b64decode((obj or {}).get("data") or ""), "big")
        former_low = int(((obj or {}).get("range") or self.range).partition("-")[0])
        bits = bits << (former_low - self.low) if former_low >= self.low else bits >> (self.low - former_low)
        return bits & ((1 << self.size) - 1)
