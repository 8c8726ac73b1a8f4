"""Changes of Services and EndpointSlices since the rules were written, and their application.

A change that is undone before the rules are written does not count.

Upstream: pkg/proxy/servicechangetracker.go, pkg/proxy/endpointschangetracker.go, pkg/proxy/endpointslicecache.go
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tetrapod.kube_proxy import metrics
from tetrapod.kube_proxy.endpoints import Endpoints, endpoints_of, service_of
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePorts, name_of, ports_of
from tetrapod.machinery.gvk import Object

_TRIGGER: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class ServiceChanges:
    """The ports of all Services in one family, and changes that are not applied yet.

    Attributes:
        ports: the ports that were applied last.
    """

    def __init__(self, family: Family) -> None:
        self.ports: ServicePorts = {}
        self._family = family
        self._by_service: dict[ServiceName, ServicePorts] = {}
        self._pending: dict[ServiceName, ServicePorts] = {}

    def update(self, old: Object | None, new: Object | None) -> bool:
        """Record a change of a Service, and return whether changes are pending.

        Args:
            old: the Service before; None if it was created.
            new: the Service now; None if it was deleted.
        """
        service = new if new is not None else old
        assert service is not None
        metrics.SERVICE_CHANGES.add()
        name, ports = name_of(service), ports_of(new, self._family)
        if ports == self._by_service.get(name, {}):
            self._pending.pop(name, None)
        else:
            self._pending[name] = ports
        metrics.SERVICE_CHANGES_PENDING.set((), len(self._pending))
        return bool(self._pending)

    def apply(self) -> set[ServiceName]:
        """Apply the pending changes to `ports`, and return the Services that have changed."""
        changed = self._pending
        self._pending = {}
        for name, ports in changed.items():
            for port in self._by_service.pop(name, {}):
                del self.ports[port]
            if ports:
                self._by_service[name] = ports
                self.ports.update(ports)
        metrics.SERVICE_CHANGES_PENDING.set((), 0)
        return set(changed)


@dataclass(slots=True)
class EndpointUpdate:
    """The changes that `EndpointChanges.apply` has made.

    Attributes:
        services: the Services whose endpoints have changed.
        has_udp: whether one of them has or had UDP ports.
        triggers: the times at which the changes were caused, as timestamps.
    """

    services: set[ServiceName] = field(default_factory=set)
    has_udp: bool = False
    triggers: list[float] = field(default_factory=list)


class EndpointChanges:
    """The endpoints of all Services in one family, and changes that are not applied yet.

    Args:
        family: the family.
        node: the name of this node.

    Attributes:
        endpoints: the endpoints that were applied last.
    """

    def __init__(self, family: Family, node: str) -> None:
        self.endpoints: Endpoints = {}
        self._family = family
        self._node = node
        self._slices: dict[ServiceName, dict[str, Object]] = {}
        self._pending: dict[ServiceName, dict[str, Object | None]] = {}
        self._by_service: dict[ServiceName, Endpoints] = {}
        self._triggers: dict[ServiceName, list[float]] = {}
        self._started = time.time()

    def update(self, endpoint_slice: Object, *, removed: bool) -> bool:
        """Record a change of an EndpointSlice, and return whether it changes endpoints.

        Args:
            endpoint_slice: the slice, as it is now or was last.
            removed: whether it was deleted.
        """
        service = service_of(endpoint_slice)
        if service is None or endpoint_slice.get("addressType") != self._family.value:
            return False
        metrics.ENDPOINT_CHANGES.add()
        name = endpoint_slice["metadata"]["name"]
        pending = self._pending.get(service, {})
        known = pending[name] if name in pending else self._slices.get(service, {}).get(name)
        if _content(known) == _content(None if removed else endpoint_slice):
            return False
        self._pending.setdefault(service, {})[name] = None if removed else endpoint_slice
        metrics.ENDPOINT_CHANGES_PENDING.add()
        self._note_trigger(service, endpoint_slice, removed=removed)
        return True

    def _note_trigger(self, service: ServiceName, endpoint_slice: Object, *, removed: bool) -> None:
        """Keep the time at which the change was caused. It is unknown for deletions, and ignored if it is too old."""
        if removed:
            self._triggers.pop(service, None)
            return
        text = (endpoint_slice["metadata"].get("annotations") or {}).get(_TRIGGER)
        try:
            caused = datetime.fromisoformat(text).timestamp() if text else 0.0
        except ValueError:
            return
        if caused > self._started:
            self._triggers.setdefault(service, []).append(caused)

    def apply(self) -> EndpointUpdate:
        """Apply the pending changes to `endpoints`, and return what has changed."""
        update = EndpointUpdate(set(self._pending))
        for service, changes in self._pending.items():
            slices = self._slices.setdefault(service, {})
            for name, endpoint_slice in changes.items():
                if endpoint_slice is None:
                    slices.pop(name, None)
                else:
                    slices[name] = endpoint_slice
            former = self._by_service.pop(service, {})
            now = endpoints_of(service, slices.values(), self._node)
            if not slices:
                del self._slices[service]
            for port in former:
                del self.endpoints[port]
            if now:
                self._by_service[service] = now
                self.endpoints.update(now)
            update.has_udp = update.has_udp or any(port.protocol == "UDP" for port in (*former, *now))
        update.triggers = [caused for times in self._triggers.values() for caused in times]
        self._pending, self._triggers = {}, {}
        metrics.ENDPOINT_CHANGES_PENDING.set((), 0)
        return update


def _content(endpoint_slice: Object | None) -> tuple[Object | None, Object | None] | None:
    """Return the part of a slice that endpoints depend on; None for a slice that does not exist."""
    return None if endpoint_slice is None else (endpoint_slice.get("ports"), endpoint_slice.get("endpoints"))
