"""Allocation and release of cluster IPs and node ports during one write of a Service.

Addresses and ports are allocated before the write and released if it fails. Those that are no longer used are released
after it succeeds. A dry run allocates nothing and returns upstream's placeholders: the network's own address, and ports
from 32769 on.
Upstream: pkg/registry/core/service/storage/alloc.go, pkg/registry/core/service/portallocator/operation.go.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from tetrapod.core.allocators.cluster_ips import AllocationError, ClusterIPs, RangeFullError
from tetrapod.core.allocators.node_ports import NodePorts, PortError
from tetrapod.core.v1.services.address_validation import is_headless
from tetrapod.core.v1.services.changes import (
    HEADLESS,
    WITH_PORTS,
    addresses_of,
    needs_address,
    needs_health_port,
    node_ports_of,
)
from tetrapod.core.v1.services.dry_run_ports import DryRunPorts
from tetrapod.core.v1.services.ip_families import is_unchanged_dual_stack
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery import field
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import StatusError, internal_error, invalid

log = logging.getLogger(__name__)

KIND: Final = GroupKind("", "Service")
_PORTS_AT_ONCE: Final = 1000
"""Ports of a Service that are examined in one step of the event loop."""


class Allocation:
    """The cluster IPs and node ports that one write of a Service allocates and releases.

    The caller calls `create` or `update` before the write, then `commit` if the write succeeded, else `revert`.

    Args:
        dry_run: whether nothing is allocated or released; new addresses and ports are then placeholders.
    """

    def __init__(self, addresses: ClusterIPs, ports: NodePorts, dry_run: bool) -> None:
        self._addresses, self._ports, self._dry_run = addresses, ports, dry_run
        self._allocator = DryRunPorts(ports) if dry_run else ports
        self._taken_addresses: list[str] = []
        self._taken_ports: list[int] = []
        self._free_addresses: list[str] = []
        self._free_ports: list[int] = []

    async def create(self, new: Object) -> None:
        """Allocate cluster IPs, node ports and the health check node port of a new Service, and set them in `new`.

        Raises:
            StatusError: an address or port is not available. The caller must `revert` what was allocated until then.
        """
        spec = new["spec"]
        if needs_address(spec):
            await self._take_addresses(new, range(len(spec.get("ipFamilies") or ())))
        if spec.get("type") in WITH_PORTS:
            await self._first_ports(new)
        if needs_health_port(spec):
            await self._health_port(spec)

    async def update(self, new: Object, old: Object) -> None:
        """Allocate the addresses and ports that the update adds, and set them in `new`.

        Those that the new object no longer uses are released by `commit`.

        Raises:
            StatusError: an address or port is not available, or a pair of protocol and node port is repeated. The
                caller must `revert` what was allocated until then.
        """
        spec, old_spec = new["spec"], old.get("spec") or {}
        if not is_unchanged_dual_stack(spec, old_spec):
            await self._change_addresses(new, old)
        if spec.get("type") in WITH_PORTS:
            await self._more_ports(new, node_ports_of(old_spec))
        elif old_spec.get("type") in WITH_PORTS and spec.get("type") in ("ClusterIP", "ExternalName"):
            self._free_ports += node_ports_of(old_spec)
        if needs_health_port(spec) and not needs_health_port(old_spec):
            await self._health_port(spec)
        elif needs_health_port(old_spec) and not needs_health_port(spec):
            self._free_ports.append(old_spec.get("healthCheckNodePort") or 0)

    async def commit(self) -> None:
        """Release the addresses and ports that the old object used and the new one does not."""
        if not self._dry_run:
            await release(self._addresses, self._ports, self._free_addresses, self._free_ports)

    async def revert(self) -> None:
        """Release everything that was allocated for this write."""
        if not self._dry_run:
            await release(self._addresses, self._ports, self._taken_addresses, self._taken_ports)

    async def _change_addresses(self, new: Object, old: Object) -> None:
        """Allocate and release cluster IPs for a change of the type or of the number of IP families.

        Raises:
            StatusError: 422, a requested address is not available or its IPAddress is rejected; 500, no address is
                free.

        Upstream: updateClusterIPs
        """
        spec, old_spec = new["spec"], old.get("spec") or {}
        families, old_families = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
        if not needs_address(old_spec):
            if needs_address(spec):
                await self._take_addresses(new, range(len(families)))
        elif is_headless(old_spec):
            return
        elif not needs_address(spec):
            self._free_addresses = addresses_of(old)
        elif len(old_families) == 1 and len(families) == 2:
            await self._take_addresses(new, range(1, 2))
        elif len(old_families) == 2 and len(families) == 1:
            self._free_addresses = addresses_of(old)[1:]

    async def _take_addresses(self, new: Object, indexes: range) -> None:
        """Allocate one address for each of these IP families, the requested one if there is one, and set them in `new`.

        A headless Service gets none.

        Args:
            new: the Service.
            indexes: the indexes of the IP families in spec.ipFamilies.

        Raises:
            StatusError: 422, a requested address is not available or its IPAddress is rejected; 500, no address is
                free.
        """
        spec = new["spec"]
        ips = list(spec.get("clusterIPs") or ())
        if ips[:1] == [HEADLESS]:
            return
        families = spec.get("ipFamilies") or []
        ips += [""] * (len(families) - len(ips))
        allocated = ips.copy()
        for i in indexes:
            try:
                if ips[i]:
                    await self._addresses.take(ips[i], new, self._dry_run)
                else:
                    allocated[i] = await self._addresses.take_any(families[i], new, self._dry_run)
            except RangeFullError as error:
                raise internal_error(f'failed to allocate a serviceIP for Service "{_name(new)}": {error}') from None
            except AllocationError as error:
                detail = f"failed to allocate IP{f' {ips[i]}' if ips[i] else ''}: {error}"
                raise invalid(KIND, _name(new), [field.invalid("spec.clusterIPs", ips, detail)]) from None
            self._taken_addresses.append(allocated[i])
        spec["clusterIP"], spec["clusterIPs"] = allocated[0], allocated

    async def _first_ports(self, new: Object) -> None:
        """Allocate node ports on create, and set them in `new`.

        A port number that is served over several protocols gets one node port for all of them.

        Raises:
            StatusError: 422, a requested port is not available; 500, no port is free.

        Upstream: initNodePorts
        """
        spec = new["spec"]
        ports, node_port_of = spec.get("ports") or [], dict[int, int]()
        requested_of: dict[Any, int] = {}  # the first node port that is requested for each port
        for port in ports:
            if port.get("nodePort"):
                requested_of.setdefault(port.get("port"), port["nodePort"])
        for i, port in enumerate(ports):
            if i % _PORTS_AT_ONCE == _PORTS_AT_ONCE - 1:
                await asyncio.sleep(0)
            requested, number = port.get("nodePort") or 0, port.get("port") or 0
            if not requested and not _makes_ports(spec):
                continue
            if number not in node_port_of:
                shared = requested_of.get(port.get("port"), 0)
                if shared:
                    await self._take_node_port(new, i, shared)
                node_port_of[number] = port["nodePort"] = shared or await self._any_node_port()
            elif not requested:
                port["nodePort"] = node_port_of[number]
            elif requested != node_port_of[number]:
                await self._take_node_port(new, i, requested)

    async def _more_ports(self, new: Object, old_ports: list[int]) -> None:
        """Allocate the node ports that an update adds and set them in `new`; `commit` releases those that it removes.

        Args:
            old_ports: the node ports of the stored Service.

        Raises:
            StatusError: 422, a requested port is not available or repeated; 500, no port is free.

        Upstream: updateNodePorts
        """
        spec = new["spec"]
        seen: set[tuple[str, int]] = set()
        known = set(old_ports)
        for i, port in enumerate(spec.get("ports") or ()):
            if i % _PORTS_AT_ONCE == _PORTS_AT_ONCE - 1:
                await asyncio.sleep(0)
            requested = port.get("nodePort") or 0
            if not requested and not _makes_ports(spec):
                continue
            if not requested:
                port["nodePort"] = requested = await self._any_node_port()
            elif requested not in known:
                await self._take_node_port(new, i, requested)
            key = (port.get("protocol") or "", requested)
            if key in seen:  # upstream returns this error without a status
                raise StatusError(422, "Invalid", f"duplicate nodePort: {{{key[0]} {requested}}}")
            seen.add(key)
            known.add(requested)
        kept = set(node_ports_of(spec))
        self._free_ports += [port for port in old_ports if port not in kept]

    async def _health_port(self, spec: Object) -> None:
        """Allocate the requested health check node port, or any, and set it in `spec`.

        Raises:
            StatusError: 422, the port is not available, or none is free.
        """
        requested = spec.get("healthCheckNodePort") or 0
        try:
            if requested:
                await self._take_port(requested)
            else:
                spec["healthCheckNodePort"] = await self._any_port()
        except PortError as error:
            subject = f"requested HealthCheck NodePort {requested}" if requested else "a HealthCheck NodePort 0"
            text = f"Internal error occurred: failed to allocate {subject}: {error}"
            # Upstream's text, but upstream sends it with code 500, although the request causes the error.
            raise StatusError(422, "Invalid", text) from None

    async def _take_node_port(self, new: Object, index: int, port: int) -> None:
        try:
            await self._take_port(port)
        except PortError as error:
            raise invalid(
                KIND, _name(new), [field.invalid(f"spec.ports[{index}].nodePort", port, str(error))]
            ) from None

    async def _any_node_port(self) -> int:
        try:
            return await self._any_port()
        except PortError as error:
            raise internal_error(f"failed to allocate a nodePort: {error}") from None

    async def _take_port(self, port: int) -> None:
        """Allocate this port, raising PortError if it is not available."""
        await self._allocator.take(port)
        self._taken_ports.append(port)

    async def _any_port(self) -> int:
        """Allocate and return a free port, raising PortError if the range is full."""
        port = await self._allocator.take_any()
        self._taken_ports.append(port)
        return port


async def release(addresses: ClusterIPs, ports: NodePorts, free_addresses: list[str], free_ports: list[int]) -> None:
    """Release `free_addresses` and `free_ports`, which may be empty, in the two allocators.

    Errors are logged, as upstream: the write of the Service has its own result, and the repairs release the rest.
    """
    for address in free_addresses:
        try:
            await addresses.release(address)
        except (StatusError, Unavailable) as error:
            log.error("error releasing cluster IP %s: %s", address, error)
    if free_ports:
        try:
            await ports.release(free_ports)
        except (StatusError, Unavailable) as error:
            log.error("error releasing node ports %s: %s", free_ports, error)


def _makes_ports(spec: Object) -> bool:
    """Return whether service ports without a node port get one: type NodePort or allocateLoadBalancerNodePorts is true.

    Upstream: shouldAllocateNodePorts
    """
    return spec.get("type") == "NodePort" or bool(spec.get("allocateLoadBalancerNodePorts"))


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))
