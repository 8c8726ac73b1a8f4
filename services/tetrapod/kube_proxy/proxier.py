"""`Proxier`: keeps the rules of one IP family equal to the Services and EndpointSlices of the API.

The first write, and one after an error or each hour, contains the chains of all ports. Others contain those of the
ports that have changed, and the shared chains.

Upstream: pkg/proxy/iptables/proxier.go
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import Final

from tetrapod.kube_proxy import metrics
from tetrapod.kube_proxy.canary import watch_rules
from tetrapod.kube_proxy.chains import JUMPS, KUBELET_JUMPS, belongs_to_port
from tetrapod.kube_proxy.changes import EndpointChanges, EndpointUpdate, ServiceChanges
from tetrapod.kube_proxy.conntrack import delete_stale_flows
from tetrapod.kube_proxy.endpoints import local_ready_counts
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.health import ProxyHealth
from tetrapod.kube_proxy.interfaces import interface_addresses
from tetrapod.kube_proxy.iptables import IPTables, IPTablesError
from tetrapod.kube_proxy.node_ports import NodePortAddresses
from tetrapod.kube_proxy.node_rules import NodeSettings, first_tables, forwarding_rules, node_port_entries
from tetrapod.kube_proxy.packet_counters import INVALID, LOCALHOST, PacketCounters
from tetrapod.kube_proxy.port_rules import PortRules, Settings, port_rules
from tetrapod.kube_proxy.service_health import ServiceHealth
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePortName
from tetrapod.kube_proxy.sync_loop import SyncLoop
from tetrapod.kube_proxy.tables import Table, chains_in
from tetrapod.machinery.golang.ip_addresses import Address
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

FULL_SYNC_SECONDS: Final = 3600.0
LARGE_CLUSTER: Final = 1000
"""The number of endpoints from which on rules have no comments, and stale chains are deleted less often."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a `Proxier` uses.

    Attributes:
        iptables: the rules of the family.
        health: keeps the times of requested and completed writes.
        service_health: the servers of health check ports.
        counters: the kernel's counters.
        node_ports: the addresses that accept traffic to node ports.
    """

    iptables: IPTables
    health: ProxyHealth
    service_health: ServiceHealth
    counters: PacketCounters
    node_ports: NodePortAddresses


class Proxier:
    """The rules of one family.

    Args:
        parts: its parts.
        node: the settings of the rules that do not depend on Services.
        ports: the settings of the rules of Services.
        sync_period: the seconds after which a failed write is repeated, and between two checks of the rules.
        min_sync_period: the seconds between two writes.
    """

    def __init__(
        self, parts: Parts, node: NodeSettings, ports: Settings, *, sync_period: float, min_sync_period: float
    ) -> None:
        self.family: Family = parts.iptables.family
        self._parts = parts
        self._node = node
        self._settings = ports
        self._period = sync_period
        self._services = ServiceChanges(self.family)
        self._endpoints = EndpointChanges(self.family, ports.place.node)
        self._rules: dict[ServicePortName, PortRules] = {}
        self._ready = False
        self._full = True
        self._last_full = self._last_cleanup = float("-inf")
        self._loop = SyncLoop(
            f"sync of {self.family.value}",
            self._sync,
            pause=min_sync_period,
            retry=sync_period,
            longest=FULL_SYNC_SECONDS,
        )

    # --- changes of the API

    def service_changed(self, old: Object | None, new: Object | None) -> None:
        """Take note of a Service that was created, changed or deleted."""
        if self._services.update(old, new):
            self.request()

    def endpoint_slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Take note of an EndpointSlice that was created, changed or deleted."""
        last = new if new is not None else old
        if last is not None and self._endpoints.update(last, removed=new is None):
            self.request()

    def zone_changed(self, zone: str) -> None:
        """Take note of the zone of this node."""
        self._settings = replace(self._settings, place=replace(self._settings.place, zone=zone))
        self.request_full()

    def all_received(self) -> None:
        """Begin to write rules, because all Services and EndpointSlices are known."""
        self._ready = True
        self._loop.request()

    def request(self) -> None:
        """Request a write of what has changed."""
        if self._ready:
            self._parts.health.queued(self.family)
            metrics.LAST_QUEUED.set((self.family.value,), time.time())
            self._loop.request()

    def request_full(self) -> None:
        """Request a write of all rules."""
        self._full = True
        self.request()

    async def run(self) -> None:
        """Write rules when something changes, and when they were removed, until cancelled."""
        self._parts.health.updated(self.family)  # it is healthy while it waits for the API
        metrics.LAST_QUEUED.set((self.family.value,), time.time())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._loop.run())
            group.create_task(watch_rules(self._parts.iptables, self._period, self.request_full))

    async def stop(self) -> None:
        """Stop the servers of health check ports. The rules stay."""
        await self._parts.service_health.stop()

    # --- writing

    async def _sync(self) -> bool:
        """Write the rules, and return whether that succeeded."""
        if not self._ready:
            return True
        began = time.monotonic()
        large = self._is_large()
        full = self._full or (began - self._last_full > FULL_SYNC_SECONDS and not large)
        self._full = False  # a change while the rules are written sets it again
        services, endpoints = self._services.apply(), self._endpoints.apply()
        succeeded = False
        try:
            if full:
                await self._prepare_chains()
            await self._write(full, services | endpoints.services)
            succeeded = True
        except (IPTablesError, OSError) as error:
            log.error("Sync failed, retrying in %s s: %s", self._period, error)
            if not full:
                metrics.PARTIAL_RESTORE_FAILURES.add((self.family.value,))
            return False
        finally:
            # The changes are applied already: after a failure, a partial write would miss them.
            self._full = self._full or not succeeded
            self._observe(time.monotonic() - began, full=full)
        if full:
            self._last_full = time.monotonic()
        await self._complete(endpoints)
        return True

    def _observe(self, seconds: float, *, full: bool) -> None:
        labels = (self.family.value,)
        metrics.SYNC_SECONDS.observe(labels, seconds)
        (metrics.FULL_SYNC_SECONDS if full else metrics.PARTIAL_SYNC_SECONDS).observe(labels, seconds)
        log.debug("sync of %s rules complete after %.3f s (full: %s)", self.family.value, seconds, full)

    def _is_large(self) -> bool:
        ports, endpoints = self._services.ports, self._endpoints.endpoints
        return sum(len(endpoints.get(name, ())) for name in ports) > LARGE_CLUSTER

    async def _prepare_chains(self) -> None:
        """Create our main chains, the jumps to them and the counters.

        Other programs have rules in the chains with the jumps, so that iptables-restore cannot replace them.
        """
        for jump in (*JUMPS, *KUBELET_JUMPS):
            await self._parts.iptables.ensure_chain(jump.table, jump.target)
            await self._parts.iptables.ensure_rule(jump.table, jump.source, jump.arguments())
        invalid, localhost = (self._parts.counters.ensure(name) for name in (INVALID, LOCALHOST))
        self._node = replace(self._node, invalid_counter=INVALID if invalid else "")
        counted = localhost and self._node.localhost_node_ports
        self._settings = replace(self._settings, localhost_counter=LOCALHOST if counted else "")

    async def _write(self, full: bool, changed: set[ServiceName]) -> None:
        large = self._is_large()
        self._settings = replace(self._settings, brief=large)
        rewritten = self._render(full, changed)
        filter_table, nat = first_tables(self._node)
        skipped = 0
        for name, rules in self._rules.items():
            filter_table.rules += rules.filter
            nat.rules += rules.dispatch
            if name in rewritten:
                nat.chains += rules.chains
                nat.rules += rules.rules
            else:
                skipped += len(rules.rules)
        deleted = await self._delete_stale_chains(nat, large=large)
        nat.rules += node_port_entries(self._node, self._node_port_addresses())
        filter_table.rules += forwarding_rules(self._node)
        self._count_rules(filter_table, nat, skipped, deleted)
        await self._restore(filter_table.text() + nat.text())

    def _render(self, full: bool, changed: set[ServiceName]) -> set[ServicePortName]:
        """Make the rules of ports that are new or have changed, and return the names of these ports."""
        ports, endpoints = self._services.ports, self._endpoints.endpoints
        rewritten = {name for name in ports if full or name.service in changed or name not in self._rules}
        for name in self._rules.keys() - ports.keys():
            del self._rules[name]
        for name in rewritten:
            self._rules[name] = port_rules(ports[name], endpoints.get(name, ()), self._settings)
        return rewritten

    async def _delete_stale_chains(self, nat: Table, *, large: bool) -> int:
        """Add the deletion of chains that no port has any more, and return their number.

        Listing the chains of a large cluster takes long, so that it is done less often. Stale chains do no harm.
        """
        if large and time.monotonic() - self._last_cleanup <= self._period:
            return 0
        active = {chain for rules in self._rules.values() for chain in rules.chains}
        try:
            existing = chains_in(await self._parts.iptables.save("nat"))
        except (IPTablesError, OSError) as error:
            log.error("Failed to execute iptables-save: stale chains will not be deleted: %s", error)
            return 0
        self._last_cleanup = time.monotonic()
        stale = sorted(chain for chain in existing - active if belongs_to_port(chain))
        nat.chains += stale  # this empties them, without which they could not be deleted
        nat.rules += [f"-X {chain}" for chain in stale]
        return len(stale)

    def _node_port_addresses(self) -> list[Address] | None:
        if self._parts.node_ports.matches_all:
            return None
        try:
            return self._parts.node_ports.choose(interface_addresses())
        except OSError as error:
            log.error(
                "Failed to get node ip address matching nodeport cidrs, services with nodeport may not work as "
                "intended: %s",
                error,
            )
            return []

    def _count_rules(self, filter_table: Table, nat: Table, skipped: int, deleted: int) -> None:
        family, written = self.family.value, len(nat.rules) - deleted
        metrics.RULES.set(("filter", family), len(filter_table.rules))
        metrics.RULES_WRITTEN.set(("filter", family), len(filter_table.rules))
        metrics.RULES.set(("nat", family), written + skipped)
        metrics.RULES_WRITTEN.set(("nat", family), written)

    async def _restore(self, data: str) -> None:
        try:
            await self._parts.iptables.restore(data)
        except IPTablesError as error:
            metrics.RESTORE_FAILURES.add((self.family.value,))
            if (line := error.failed_line()) is not None:
                around = data.splitlines()[max(line - 4, 0) : line + 3]
                log.error("Failed to execute iptables-restore, around line %d:\n%s", line, "\n".join(around))
            raise

    async def _complete(self, endpoints: EndpointUpdate) -> None:
        """Report a write, and update what depends on the rules."""
        family, now = self.family.value, time.time()
        for caused in endpoints.triggers:
            metrics.NETWORK_PROGRAMMING_SECONDS.observe((family,), now - caused)
        rules = self._rules.values()
        internal, external = (
            sum(one.internal_without_local for one in rules),
            sum(one.external_without_local for one in rules),
        )
        metrics.WITHOUT_LOCAL_ENDPOINTS.set(("internal", family), internal)
        metrics.WITHOUT_LOCAL_ENDPOINTS.set(("external", family), external)
        self._parts.health.updated(self.family)
        metrics.LAST_SYNC.set((family,), now)
        checked = {
            name.service: port.health_check_node_port
            for name, port in self._services.ports.items()
            if port.health_check_node_port
        }
        await self._parts.service_health.serve(checked, local_ready_counts(self._endpoints.endpoints))
        if endpoints.has_udp:
            await asyncio.to_thread(
                delete_stale_flows,
                self.family,
                self._services.ports,
                self._endpoints.endpoints,
                external_ips=self._settings.external_ips,
            )
