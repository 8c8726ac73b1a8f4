"""`NodeWatch`: the Node of this proxy.

The rules are made for the addresses that the node has at the start. If they change, the proxy ends, so that it starts
again with the new ones.

Upstream: pkg/proxy/node.go; pkg/util/node, GetNodeHostIPs; cmd/kube-proxy/app/server.go, detectNodeIPs
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.kube_proxy.families import Family, family_of, parse_address
from tetrapod.machinery.golang.ip_addresses import Address
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

_NODES: Final = GroupVersionResource("", "v1", "nodes")
_ZONE: Final = "topology.kubernetes.io/zone"
_REPORT_SECONDS: Final = 5.0
_ADDRESS_SECONDS: Final = 30.0
_POD_CIDR_SECONDS: Final = 300.0


class NodeChanged(Exception):
    """The node has changed in a way that needs a new start of the proxy."""


class NodeWatch:
    """The Node with the name of this node.

    Attributes:
        addresses: the addresses of the node when it was first seen, at most one of each family; perhaps none.
        pod_cidrs: the addresses of its pods when it was first seen.

    Args:
        client: a client of the API.
        name: the name of the node.
        needs_pod_cidrs: whether the rules depend on the addresses of its pods.
        zone_changed: called with the zone of the node after it has changed.
    """

    def __init__(
        self, client: Client, name: str, *, needs_pod_cidrs: bool, zone_changed: Callable[[str], None]
    ) -> None:
        self.addresses: list[Address] = []
        self.pod_cidrs: tuple[str, ...] = ()
        self._client = client
        self._name = name
        self._needs_pod_cidrs = needs_pod_cidrs
        self._zone_changed = zone_changed
        self._informer = Informer(client, _NODES, field_selector=f"metadata.name={name}")
        self._changed = asyncio.Event()
        self._problem: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._informer.handlers.append(lambda old, new: self._changed.set())

    def node(self) -> Object | None:
        """Return the Node, or None if it does not exist."""
        return self._informer.get("", self._name)

    @property
    def zone(self) -> str:
        """The zone of the node; "" if it is unknown."""
        node = self.node()
        return (node["metadata"].get("labels") or {}).get(_ZONE, "") if node is not None else ""

    async def run(self) -> None:
        """Watch the node until cancelled."""
        await self._informer.run()

    async def wait_for_addresses(self) -> None:
        """Wait until the Node has addresses, for half a minute, and the addresses of pods if they are needed.

        Raises:
            ValueError: the addresses of pods are needed, and they were missing after five minutes.
        """
        await self._wait_for_api()
        await self._wait(lambda: bool(node_addresses(self.node())), _ADDRESS_SECONDS)
        if self._needs_pod_cidrs and not await self._wait(lambda: bool(_pod_cidrs(self.node())), _POD_CIDR_SECONDS):
            node = f'node "{self._name}"'
            condition = f"{node} to exist" if self.node() is None else f"PodCIDR allocation on {node}"
            raise ValueError(f"timeout waiting for {condition}")
        self.addresses, self.pod_cidrs = node_addresses(self.node()), _pod_cidrs(self.node())
        if self.node() is None:
            log.error('Timed out waiting for node to exist node="%s"', self._name)
        elif not self.addresses:
            log.error('Timed out waiting for node to be assigned IPs node="%s"', self._name)

    async def _wait_for_api(self) -> None:
        """Wait until the Node was listed, and log why that takes long, since the informer only logs errors at -v 4."""
        while not self._informer.synced.is_set():
            try:
                async with asyncio.timeout(_REPORT_SECONDS):
                    await self._informer.synced.wait()
            except TimeoutError:
                log.error("Failed to list the node: %s", await self._reason())

    async def _reason(self) -> str:
        try:
            await self._client.list(_NODES, fieldSelector=f"metadata.name={self._name}")
        except (StatusError, Unavailable, OSError) as error:
            return str(error)
        return "the API server is slow"

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        return condition()

    def follow(self) -> None:
        """Begin to report changes of the zone, and to notice those that need a new start."""
        zone = self.zone
        if zone:
            self._zone_changed(zone)

        def changed(old: Object | None, new: Object | None) -> None:
            nonlocal zone
            problem = self._problem_of(new)
            if problem and not self._problem.done():
                self._problem.set_exception(NodeChanged(problem))
            if new is not None and self.zone != zone:
                zone = self.zone
                self._zone_changed(zone)

        self._informer.handlers.append(changed)

    async def until_changed(self) -> None:
        """Wait until the node has changed so that the proxy must start again.

        Raises:
            NodeChanged: it has. The text says how.
        """
        await self._problem

    def _problem_of(self, node: Object | None) -> str:
        if node is None:
            return f'node "{self._name}" is being deleted'
        if self._needs_pod_cidrs and _pod_cidrs(node) != self.pod_cidrs:
            return f'PodCIDRs changed for the node "{self._name}"'
        return f'NodeIPs changed for the node "{self._name}"' if node_addresses(node) != self.addresses else ""


def node_addresses(node: Object | None) -> list[Address]:
    """Return the first address of a Node, and its first one of the other family. Internal addresses come first."""
    listed = (node or {}).get("status", {}).get("addresses") or ()
    texts = [entry["address"] for kind in ("InternalIP", "ExternalIP") for entry in listed if entry["type"] == kind]
    first_of: dict[Family, Address] = {}
    for text in texts:
        if (address := parse_address(text)) is not None:
            first_of.setdefault(family_of(address), address)
    return list(first_of.values())


def _pod_cidrs(node: Object | None) -> tuple[str, ...]:
    return tuple((node or {}).get("spec", {}).get("podCIDRs") or ())


def addresses_by_family(known: Sequence[Address], bind_address: str) -> tuple[Family, dict[Family, Address]]:
    """Return the family of the node's primary address, and an address for each family.

    A family without an address gets the loopback address.

    Args:
        known: the addresses of the Node.
        bind_address: the primary address by the configuration; an unspecified one for that of the Node.
    """
    addresses: dict[Family, Address] = {
        Family.IPV4: ipaddress.IPv4Address("127.0.0.1"),
        Family.IPV6: ipaddress.IPv6Address("::1"),
    }
    addresses |= {family_of(address): address for address in known}
    primary = family_of(known[0]) if known else Family.IPV4
    given = parse_address(bind_address)
    if given is not None and not given.is_unspecified:
        primary = family_of(given)
        addresses[primary] = given
    if addresses[primary].is_loopback:
        log.warning(
            "Can't determine this node's IP, assuming loopback; if this is incorrect, please set the --bind-address "
            "flag"
        )
    return primary, addresses
