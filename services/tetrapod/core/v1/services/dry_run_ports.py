"""The node ports of a dry run.

Upstream: pkg/registry/core/service/portallocator/operation.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.allocators.node_ports import NodePorts, PortError

_DUMMY_PORT_BASE: Final = 32768
"""A dry run numbers the node ports that it would allocate from the next number on."""


class DryRunPorts:
    """The allocator of node ports for a dry run, which stores nothing.

    It checks that requested ports are free, and returns placeholders for ports that the client leaves unset.

    Args:
        ports: the real allocator, whose allocated ports are read once.
    """

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports
        self._allocated: set[int] | None = None
        self._claimed: set[int] = set()
        self._highest = 0

    async def take(self, port: int) -> None:
        """Claim this port, raising PortError if it is allocated or claimed.

        Like upstream, a dry run does not check that the port is in the range.
        """
        if self._allocated is None:
            self._allocated = await self._ports.taken()
        if port in self._claimed or port in self._allocated:
            raise PortError("provided port is already allocated")
        self._claim(port)

    async def take_any(self) -> int:
        """Return a placeholder for a node port: the number above the highest port of this dry run.

        A service may already have that port, because the response is not used for a real allocation.
        """
        port = (self._highest or _DUMMY_PORT_BASE) + 1
        self._claim(port)
        return port

    def _claim(self, port: int) -> None:
        self._claimed.add(port)
        self._highest = max(self._highest, port)
