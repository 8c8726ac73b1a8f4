"""What one write of a Service takes and gives back (upstream: core/service/storage/alloc.go, portallocator/operation.go).

Addresses and ports are taken before the write, given back when it fails; what is needed no more becomes free when it succeeds.
A dry run takes nothing and answers with upstream's dummies: the network's own address, and the ports from 32769 on.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.allocators.cluster_ips import AllocationError, ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts, PortError
from tetrapod.core.strategies.service_changes import HEADLESS, WITH_PORTS, addresses_of, needs_address, needs_health_port, node_ports_of
from tetrapod.core.strategies.service_families import is_unchanged_dual_stack
from tetrapod.machinery import field
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import StatusError, internal_error, invalid

KIND: Final = GroupKind("", "Service")
_BEFORE_DUMMY_PORTS: Final = 32768


class Allocation:
    """The transaction of one write."""

    def __init__(self, addresses: ClusterIPs, ports: NodePorts, dry_run: bool) -> None:
        self._addresses, self._ports, self._dry_run = addresses, ports, dry_run
        self._taken_addresses: list[str] = []
        self._taken_ports: list[int] = []
        self._free_addresses: list[str] = []
        self._free_ports: list[int] = []

    async def create(self, new: Object) -> None:
        """
        Raises:
            StatusError: something cannot be had. What was taken until then is not given back here.
        """
        spec = new["spec"]
        if needs_address(spec):
            await self._take_addresses(new)
        if spec.get("type") in WITH_PORTS:
            await self._first_ports(new)
        if needs_health_port(spec):
            await self._health_port(spec)

    async def update(self, new: Object, old: Object) -> None:
        """Raises StatusError, as `create`."""
        spec, before = new["spec"], old.get("spec") or {}
        if not is_unchanged_dual_stack(spec, before):
            if needs_address(spec) and not needs_address(before):
                await self._take_addresses(new)
            elif not needs_address(spec):
                self._free_addresses = addresses_of(old)
        if spec.get("type") in WITH_PORTS:
            await self._more_ports(new, node_ports_of(before))
        elif before.get("type") in WITH_PORTS and spec.get("type") in ("ClusterIP", "ExternalName"):
            self._free_ports += node_ports_of(before)
        if needs_health_port(spec) and not needs_health_port(before):
            await self._health_port(spec)
        elif needs_health_port(before) and not needs_health_port(spec):
            self._free_ports.append(before.get("healthCheckNodePort") or 0)

    async def commit(self) -> None:
        if not self._dry_run:
            await release(self._addresses, self._ports, self._free_addresses, self._free_ports)

    async def revert(self) -> None:
        if not self._dry_run:
            await release(self._addresses, self._ports, self._taken_addresses, self._taken_ports)

    async def _take_addresses(self, new: Object) -> None:
        """One for each family: the one that is asked for, or any."""
        spec = new["spec"]
        ips = list(spec.get("clusterIPs") or ())
        if ips[:1] == [HEADLESS]:
            return
        ips += [""] * (len(spec.get("ipFamilies") or ()) - len(ips))
        for i in range(len(spec.get("ipFamilies") or ())):
            asked = ips[i]
            try:
                if asked:
                    await self._addresses.take(asked, new, self._dry_run)
                else:
                    ips[i] = await self._addresses.take_any(new, self._dry_run)
            except AllocationError as error:
                if asked:
                    text = f"failed to allocate IP {asked}: {error}"
                    raise invalid(KIND, _name(new), [field.invalid("spec.clusterIPs", ips, text)]) from None
                raise internal_error(f'failed to allocate a serviceIP for Service "{_name(new)}": {error}') from None
            self._taken_addresses.append(ips[i])
        spec["clusterIP"], spec["clusterIPs"] = ips[0], ips

    async def _first_ports(self, new: Object) -> None:
        """One node port for a port that is served over several protocols (upstream: initNodePorts)."""
        spec = new["spec"]
        ports, of_port = spec.get("ports") or [], dict[int, int]()
        for i, port in enumerate(ports):
            asked, number = port.get("nodePort") or 0, port.get("port") or 0
            if not asked and not _makes_ports(spec):
                continue
            if number not in of_port:
                wanted = next((p["nodePort"] for p in ports if p.get("port") == port.get("port") and p.get("nodePort")), 0)
                if wanted:
                    await self._take_node_port(new, i, wanted)
                of_port[number] = port["nodePort"] = wanted or await self._any_node_port()
            elif not asked:
                port["nodePort"] = of_port[number]
            elif asked != of_port[number]:
                await self._take_node_port(new, i, asked)

    async def _more_ports(self, new: Object, before: list[int]) -> None:
        """What an update asks for anew (upstream: updateNodePorts)."""
        spec = new["spec"]
        seen: set[tuple[str, int]] = set()
        for i, port in enumerate(spec.get("ports") or ()):
            asked = port.get("nodePort") or 0
            if not asked and not _makes_ports(spec):
                continue
            if not asked:
                port["nodePort"] = asked = await self._any_node_port()
            elif asked not in before and asked not in {number for _, number in seen}:
                await self._take_node_port(new, i, asked)
            key = (port.get("protocol") or "", asked)
            if key in seen:  # upstream forgets to give this error a code
                raise StatusError(422, "Invalid", f"duplicate nodePort: {{{key[0]} {asked}}}")
            seen.add(key)
        kept = node_ports_of(spec)
        self._free_ports += [port for port in before if port not in kept]

    async def _health_port(self, spec: Object) -> None:
        asked = spec.get("healthCheckNodePort") or 0
        try:
            if asked:
                await self._take_port(asked)
            else:
                spec["healthCheckNodePort"] = await self._any_port()
        except PortError as error:
            what = f"requested HealthCheck NodePort {asked}" if asked else "a HealthCheck NodePort 0"
            text = f"Internal error occurred: failed to allocate {what}: {error}"
            raise StatusError(422, "Invalid", text) from None  # upstream's words, though it calls this its own mistake (500)

    async def _take_node_port(self, new: Object, index: int, port: int) -> None:
        try:
            await self._take_port(port)
        except PortError as error:
            raise invalid(KIND, _name(new), [field.invalid(f"spec.ports[{index}].nodePort", port, str(error))]) from None

    async def _any_node_port(self) -> int:
        try:
            return await self._any_port()
        except PortError as error:
            raise internal_error(f"failed to allocate a nodePort: {error}") from None

    async def _take_port(self, port: int) -> None:
        """Raises PortError. A dry run does not look whether the port is in the range, as upstream's."""
        if not self._dry_run:
            await self._ports.take(port)
        elif port in self._taken_ports or port in await self._ports.taken():
            raise PortError("provided port is already allocated")
        self._taken_ports.append(port)

    async def _any_port(self) -> int:
        """Raises PortError."""
        port = max(self._taken_ports, default=_BEFORE_DUMMY_PORTS) + 1 if self._dry_run else await self._ports.take_any()
        self._taken_ports.append(port)
        return port


async def release(addresses: ClusterIPs, ports: NodePorts, free_addresses: list[str], free_ports: list[int]) -> None:
    for address in free_addresses:
        await addresses.release(address)
    if free_ports:
        await ports.release(free_ports)


def _makes_ports(spec: Object) -> bool:
    """Whether ports without a node port are given one (upstream: shouldAllocateNodePorts)."""
    return spec.get("type") == "NodePort" or bool(spec.get("allocateLoadBalancerNodePorts"))


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))
