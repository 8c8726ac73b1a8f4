"""The repair of node ports: every node port of a service is allocated, and every allocated port has its service.

Each API server runs it, regardless of `--controllers`. A port without a service may be allocated by a request in
progress: it is released only by the fourth consecutive check that finds it unused.
Upstream: pkg/registry/core/service/portallocator/controller.
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
_CHECKS: Final = 3
"""Consecutive checks that find a port unused before the one that releases it."""
_ACTION: Final = "PortAllocation"


class PortRepair:
    """The controller that keeps the allocated node ports equal to those of the Services.

    Args:
        period: seconds between two comparisons of all Services with the allocated ports.
    """

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
        """Check all services once and correct the allocated ports (`_compare`).

        An error is counted in a metric and raised.
        """
        try:
            await self._compare()
        except Exception:
            metrics.PORT_REPAIR_ERRORS.add()
            raise

    async def _compare(self) -> None:
        """Compare the allocated ports with the node ports of services, record events, and correct the allocated ports.

        A port is freed when four comparisons in a row find that no service uses it. The allocated ports are read before
        the services, so that a port that is allocated in between does not seem unused. An event that cannot be recorded
        is skipped.

        Raises:
            StatusError: the API server rejected the list request for services.
            Unavailable: the API server or the store does not answer.
        """
        taken = await self._ports.taken()
        page = await self._client.list(SERVICES)
        used: set[int] = set()
        for service in page.get("items") or ():
            for port in node_ports(service):
                if not self._ports.low <= port <= self._ports.high:
                    message = f"Port {port} is not within the port range {self._ports.range}; please recreate service"
                    metrics.REPAIRED_PORTS.add(("outOfRange",))
                    await self._warn(service, "PortOutOfRange", message)
                elif port in used:
                    metrics.REPAIRED_PORTS.add(("duplicate",))
                    await self._warn(
                        service,
                        "PortAlreadyAllocated",
                        f"Port {port} was assigned to multiple services; please recreate service",
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
        """Count a comparison that found an allocated port unused, and return whether it was the fourth in a row.

        If it was, the port is to be freed and its count is reset.
        """
        checks_left = self._suspects[port] = self._suspects.get(port, _CHECKS) - 1
        if checks_left >= 0:
            return False
        metrics.REPAIRED_PORTS.add(("leak",))
        log.warning("the node port %d appears to have leaked: cleaning up", port)
        del self._suspects[port]
        return True

    async def _warn(self, service: Object, reason: str, note: str) -> None:
        """Log a warning and record an event about the service.

        Args:
            service: the Service.
            reason: the reason of the event.
            note: the text of the event.
        """
        log.warning("%s: %s/%s: %s", reason, service["metadata"]["namespace"], service["metadata"]["name"], note)
        await self._events.record_warning({"kind": "Service", "apiVersion": "v1", **service}, reason, _ACTION, note)


def node_ports(service: Object) -> Iterator[int]:
    """Yield the node ports of a service, including healthCheckNodePort.

    A port that serves several protocols is yielded once. A port that is listed twice for one protocol is yielded twice.
    """
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
