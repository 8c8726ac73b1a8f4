"""The controller of ServiceCIDRs, which sets their finalizer and their condition Ready.

The finalizer keeps a ServiceCIDR while addresses are allocated from it. Upstream: pkg/controller/servicecidrs.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from typing import Final

from tetrapod.core.allocators.networks import IP_ADDRESSES, MANAGED_BY, SERVICE_CIDRS, Network, networks_of
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339, parse

_FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_GRACE: Final = 10.0
"""Seconds that the allocators of other replicas have to observe that a ServiceCIDR is being deleted."""
_HELD: Final = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"


class ServiceNetworks:
    """The controller that sets the finalizer and the condition Ready of ServiceCIDRs.

    Args:
        grace: seconds between the deletion of a ServiceCIDR and the removal of its finalizer. Only tests set it.
    """

    name = "service-cidr-controller"

    def __init__(self, client: Client, grace: float = _GRACE) -> None:
        self._client = client
        self._grace = grace
        self._networks = Informer(client, SERVICE_CIDRS)
        self._addresses = Informer(
            client, IP_ADDRESSES, label_selector=f"ipaddress.kubernetes.io/managed-by={MANAGED_BY}"
        )
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._networks.handlers.append(lambda old, new: self._all_of(networks_of(new or old or {})))
        self._addresses.handlers.append(self._on_address)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._networks.run())
            group.create_task(self._addresses.run())
            await self._networks.synced.wait()
            await self._addresses.synced.wait()
            group.create_task(self._queue.run())

    def _all_of(self, changed: list[Network]) -> None:
        """Queue the ServiceCIDRs with a network that overlaps one of the changed networks."""
        for (_, name), other in self._networks.objects.items():
            if any(
                _overlap(changed_network, other_network)
                for changed_network in changed
                for other_network in networks_of(other)
            ):
                self._queue.add(name)

    def _on_address(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            address = ipaddress.ip_address((new or old or {})["metadata"]["name"])
            self._all_of([ipaddress.ip_network(address)])

    async def _sync(self, name: str) -> None:
        network = self._networks.get("", name)
        if network is None:
            return
        finalizers = network["metadata"].get("finalizers") or []
        if deleted := network["metadata"].get("deletionTimestamp"):
            await self._release(name, network, parse(deleted).timestamp())
            return
        if _FINALIZER not in finalizers:
            await self._patch(name, {"metadata": {"finalizers": [_FINALIZER]}})
        await self._apply_condition(
            network, {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
        )

    async def _release(self, name: str, network: Object, deleted: float) -> None:
        """Remove the finalizer of a ServiceCIDR that is being deleted, if no allocated address needs the ServiceCIDR.

        While one does, the condition Ready is False. The finalizer stays for the grace period after the deletion.

        Args:
            name: the name of the ServiceCIDR.
            network: the ServiceCIDR.
            deleted: its deletionTimestamp in seconds since the epoch.
        """
        if self._is_needed(name, network):
            await self._apply_condition(
                network, {"type": "Ready", "status": "False", "reason": "Terminating", "message": _HELD}
            )
            return
        if (remaining := deleted + self._grace - time.time()) > 0:
            self._queue.add_after(name, remaining)
            return
        if _FINALIZER in (network["metadata"].get("finalizers") or ()):
            await self._patch(name, {"metadata": {"$deleteFromPrimitiveList/finalizers": [_FINALIZER]}})

    def _is_needed(self, name: str, network: Object) -> bool:
        """Return whether an allocated address would be in no network without this ServiceCIDR."""
        others = [n for (_, other), obj in self._networks.objects.items() if other != name for n in networks_of(obj)]
        own_networks = networks_of(network)
        if all(any(_contains(other, own_network) for other in others) for own_network in own_networks):
            return False
        allocated = [ipaddress.ip_network(address) for _, address in self._addresses.objects]
        return any(
            any(_contains(own_network, address) for own_network in own_networks)
            and not any(_contains(other, address) for other in others)
            for address in allocated
        )

    async def _patch(self, name: str, patch: Object) -> None:
        try:
            await self._client.patch(SERVICE_CIDRS, "", name, patch, type="strategic")
        except StatusError as error:
            if error.code != 404:
                raise

    async def _apply_condition(self, network: Object, wanted: Object) -> None:
        """Apply the condition to the ServiceCIDR's status, unless the stored one has equal status, reason and message.

        Args:
            network: the stored ServiceCIDR.
            wanted: the condition Ready, without lastTransitionTime.
        """
        existing = find_condition(network, "Ready") or {}
        if all((existing.get(key) or "") == wanted[key] for key in ("status", "reason", "message")):
            return
        name = network["metadata"]["name"]
        body = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": name}}
        body["status"] = {"conditions": [{**wanted, "lastTransitionTime": now_rfc3339()}]}
        await self._client.patch(
            SERVICE_CIDRS, "", name, body, type="apply", subresource="status", fieldManager=self.name, force="true"
        )


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def _contains(outer: Network, inner: Network) -> bool:
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]
