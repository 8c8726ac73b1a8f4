"""Every node port of a service is taken, and none is taken for nobody (upstream: pkg/registry/core/service/portallocator/controller).

Part of the API server itself, whatever `--controllers` says. A port that no service has may be one that is being given out: it is
given up only when three looks in a row have found it so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from tetrapod.core.allocators import metrics
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.allocators.repair_addresses import SERVICES
from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

_PERIOD: Final = 180.0
_LOOKS: Final = 3
_ACTION: Final = "PortAllocation"


class PortRepair:
    """`period` is for tests."""

    name = "portallocator-repair-controller"

    def __init__(self, client: Client, ports: NodePorts, *, period: float = _PERIOD) -> None:
        self._client = client
        self._ports = ports
        self._period = period
        self._events = EventRecorder(client, self.name)
        self._suspects: dict[int, int] = {}

    async def run(self) -> None:
        await every(self._period, self.name, self.repair)

    async def repair(self) -> None:
        """One look at all services."""
        try:
            await self._look()
        except Exception:
            metrics.PORT_REPAIR_ERRORS.add()
            raise

    async def _look(self) -> None:
        """Ports taken first, services second: what is taken in between is not seen as leaked."""
        taken = await self._ports.taken()
        page = await self._client.list(SERVICES)
        used: set[int] = set()
        for service in page.get("items") or ():
            for port in node_ports(service):
                if not self._ports.low <= port <= self._ports.high:
                    note = f"Port {port} is not within the port range {self._ports.range}; please recreate service"
                    metrics.REPAIRED_PORTS.add(("outOfRange",))
                    await self._warn(service, "PortOutOfRange", note)
                elif port in used:
                    metrics.REPAIRED_PORTS.add(("duplicate",))
                    await self._warn(
                        service, "PortAlreadyAllocated", f"Port {port} was assigned to multiple services; please recreate service"
                    )
                else:
                    used.add(port)
                    self._suspects.pop(port, None)
                    if port not in taken:
                        metrics.REPAIRED_PORTS.add(("repair",))
                        await self._warn(service, "PortNotAllocated", f"Port {port} is not allocated; repairing")
        leaked = {port for port in taken - used if self._is_leaked(port)}
        if used - taken or leaked:
            await self._ports.correct(used - taken, leaked)

    def _is_leaked(self, port: int) -> bool:
        looks = self._suspects[port] = self._suspects.get(port, _LOOKS) - 1
        if looks >= 0:
            return False
        metrics.REPAIRED_PORTS.add(("leak",))
        log.warning("the node port %d appears to have leaked: cleaning up", port)
        del self._suspects[port]
        return True

    async def _warn(self, service: Object, reason: str, note: str) -> None:
        log.warning("%s: %s/%s: %s", reason, service["metadata"]["namespace"], service["metadata"]["name"], note)
        await self._events.warn({"kind": "Service", "apiVersion": "v1", **service}, reason, _ACTION, note)


def node_ports(service: Object) -> Iterator[int]:
    """Those of a service; one that serves several protocols counts once."""
    spec = service.get("spec") or {}
    seen: dict[int, set[str]] = {}
    for port in spec.get("ports") or ():
        number, protocol = port.get("nodePort") or 0, port.get("protocol", "TCP")
        if number and (number not in seen or protocol in seen[number]):
            yield number
        seen.setdefault(number, set()).add(protocol)
    health = spec.get("healthCheckNodePort") or 0
    if health and "TCP" in seen.get(health, {"TCP"}):
        yield health
