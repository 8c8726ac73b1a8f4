"""The repair of cluster IPs: every cluster IP has its IPAddress, and every IPAddress has its service.

Each API server runs it, regardless of `--controllers`. Services and addresses are checked when they change, and all of
them every 180 seconds. An IPAddress without a service may belong to a create in progress: it is kept for 60 seconds,
the maximum duration of a request.
Upstream: pkg/registry/core/service/ipallocator/controller.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from typing import Final

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.networks import (
    DEFAULT,
    IP_ADDRESSES,
    MANAGED_BY,
    contains,
    family_of,
    ip_address,
    labels_of,
    networks_of,
)
from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import parse

log = logging.getLogger(__name__)

SERVICES: Final = GroupVersionResource("", "v1", "services")
_PERIOD: Final = 180.0
_CREATE_GRACE: Final = 60.0
"""Seconds for which the IPAddress of a Service that does not exist is kept, as the Service may be being created."""
_DELETE_GRACE: Final = 5.0
"""Seconds that the request which deletes or changes a Service has to release its addresses."""
_ADDRESS: Final = "IPAddressAllocation"
_SERVICE: Final = "ClusterIPAllocation"
_VALIDATION: Final = "ClusterIPValidation"


class AddressRepair:
    """The controller that keeps IPAddress objects equal to the cluster IPs of the Services.

    Args:
        allocator: the allocator of cluster IPs; the caller runs its informers of ServiceCIDRs and IPAddresses.
        services: informer of all Services; the caller runs it.
        period: seconds between two checks of all objects.
        create_grace: seconds for which an IPAddress without a service is kept. Only tests set it.
    """

    name = "ipallocator-repair-controller"

    def __init__(
        self,
        client: Client,
        allocator: ClusterIPs,
        services: Informer,
        *,
        period: float = _PERIOD,
        create_grace: float = _CREATE_GRACE,
    ) -> None:
        self._client = client
        self._cidrs = allocator.service_cidrs
        self._services = services
        self._addresses = allocator.ip_addresses
        self._events = EventRecorder(client, self.name)
        self._period, self._create_grace = period, create_grace
        self._of_services: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self.sync_service)
        self._of_addresses: WorkQueue[str] = WorkQueue(self.name, self.sync_address)
        self._default_is_there = asyncio.Event()
        self._cidrs.handlers.append(self._on_cidr)
        self._services.handlers.append(self._on_service)
        self._addresses.handlers.append(self._on_address)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in (self._addresses, self._services, self._cidrs):
                await informer.synced.wait()
            if self._cidrs.get("", DEFAULT) is None:
                await self._default_is_there.wait()
            group.create_task(self._of_services.run())
            group.create_task(self._of_addresses.run())
            while True:
                await asyncio.sleep(self._period)
                for service in self._services.objects:
                    self._of_services.add(service)
                for _, address in self._addresses.objects:
                    self._of_addresses.add(address)

    def _on_cidr(self, old: Object | None, new: Object | None) -> None:
        if new is not None and new["metadata"]["name"] == DEFAULT:
            self._default_is_there.set()

    def _on_service(self, old: Object | None, new: Object | None) -> None:
        service = new or old or {}
        self._of_services.add((service["metadata"]["namespace"], service["metadata"]["name"]))
        # they may have leaked, but the request that deletes the service releases them in a moment
        for address in _cluster_ips(old or {}):
            self._of_addresses.add_after(address, _DELETE_GRACE)

    def _on_address(self, old: Object | None, new: Object | None) -> None:
        address = new or old or {}
        self._of_addresses.add(address["metadata"]["name"])
        if new is None:
            parent = (address.get("spec") or {}).get("parentRef") or {}
            self._of_services.add((parent.get("namespace", ""), parent.get("name", "")))

    async def sync_service(self, key: tuple[str, str]) -> None:
        """Check the cluster IPs of a service and repair their IPAddresses. A service that does not exist is ignored.

        Args:
            key: the namespace and the name of the service.

        Raises:
            StatusError, Unavailable: a request failed; the work queue checks the service again.
        """
        service = self._services.get(*key)
        if service is None:
            return
        for text in _requested_ips(service):
            if (address := parse_sloppy(text)) is not None:
                await self._check(service, str(address))
            else:
                note = "Cluster IP <nil> is not a valid IP; please recreate Service"  # upstream prints the parsed one
                await self._warn(service, "ClusterIPNotValid", _VALIDATION, note)

    async def _check(self, service: Object, address: str) -> None:
        """Check one cluster IP of a service.

        - If the IPAddress is missing or refers to something else, an event is recorded and the IPAddress is created or
          replaced.
        - If the cluster IP is in no ServiceCIDR or another service has it, only an event is recorded.
        - If the service has lost the cluster IP in the meantime, nothing happens. Upstream allocates the IPAddress
          again in this case, and deletes it a minute later.
        """
        service_name = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
        family = family_of(address)
        parsed = ipaddress.ip_address(address)
        if not any(contains(network, parsed) for cidr in self._cidrs.objects.values() for network in networks_of(cidr)):
            note = (
                f"Cluster IP [{family}]: {address} is not within any configured Service CIDR; please recreate service"
            )
            await self._warn(service, "ClusterIPOutOfRange", _SERVICE, note)
            return
        stored = self._addresses.get("", address)
        if stored is not None and _belongs_to(stored, service):
            return
        # The informers lag behind each other: read the objects, the address first, because it is released last.
        stored, current = await self._live(address), await self._live_service(*service_name.split("/"))
        if address not in _cluster_ips(current or {}) or (stored is not None and _belongs_to(stored, service)):
            return
        if stored is None:
            note = f"Cluster IP [{family}]: {address} is not allocated; repairing"
            await self._warn(service, "ClusterIPNotAllocated", _SERVICE, note)
            await self._client.create(IP_ADDRESSES, "", ip_address(address, *service_name.split("/")))
            return
        parent = (stored.get("spec") or {}).get("parentRef") or {}
        if not parent.get("group") and parent.get("resource") == "services":
            if f"{parent.get('namespace')}/{parent.get('name')}" == service_name:
                await self._recreate(address, service)  # its labels are wrong
                return
            other = await self._live_service(parent.get("namespace") or "", parent.get("name") or "")
            if other is not None:
                if address in _cluster_ips(other):
                    note = f"Cluster IP [{family}]:{address} was assigned to multiple services; please recreate service"
                    await self._warn(service, "ClusterIPAlreadyAllocated", _SERVICE, note)
                return
        note = f"the ClusterIP [{family}]: {address} for Service {service_name} has a wrong reference; repairing"
        await self._warn(service, "ClusterIPNotAllocated", _SERVICE, note)
        await self._recreate(address, service)

    async def sync_address(self, address: str) -> None:
        """Check the IPAddress with this name and delete it if no service uses it.

        IPAddresses that other controllers manage are ignored. A new one is checked again later, because the request
        that creates it may be in progress.

        Raises:
            StatusError, Unavailable: a request failed; the work queue checks the IPAddress again.
        """
        stored = self._addresses.get("", address)
        if (
            stored is None
            or (stored["metadata"].get("labels") or {}).get("ipaddress.kubernetes.io/managed-by") != MANAGED_BY
        ):
            return
        parent = (stored.get("spec") or {}).get("parentRef") or {}
        if parent.get("group") or parent.get("resource") != "services":
            reference = " ".join(parent.get(key) or "" for key in ("group", "resource", "namespace", "name"))
            note = (
                f"IPAddress {address} appears to have been modified, not referencing a Service &{{{reference}}}: "
                "cleaning up"
            )
            await self._warn(stored, "IPAddressNotAllocated", _ADDRESS, note)
            await self._delete(stored)
            return
        service_name = f"{parent.get('namespace')}/{parent.get('name')}"
        service = self._services.get(parent.get("namespace", ""), parent.get("name", ""))
        age = time.time() - parse(stored["metadata"]["creationTimestamp"]).timestamp()
        if service is None:
            if age <= self._create_grace:
                self._of_addresses.add_after(address, self._create_grace - age + 0.1)
                return
            note = f"IPAddress: {address} for Service {service_name} appears to have leaked: cleaning up"
            await self._warn(stored, "IPAddressNotAllocated", _ADDRESS, note)
            await self._delete(stored)
            return
        if address in _cluster_ips(service):
            return
        if (service.get("spec") or {}).get("type") == "ExternalName" and age < self._create_grace:
            self._of_addresses.add_after(address, self._create_grace - age + 0.1)
            return
        # Upstream compares by ">". It then deletes the address of a Service that gets a second one in its first second.
        if stored["metadata"]["creationTimestamp"] >= service["metadata"]["creationTimestamp"] and age < _DELETE_GRACE:
            self._of_addresses.add_after(address, _DELETE_GRACE)
            return
        note = f"IPAddress: {address} for Service {service_name} has a wrong reference; cleaning up"
        await self._warn(stored, "IPAddressWrongReference", _ADDRESS, note)
        await self._delete(stored)

    async def _warn(self, about: Object, reason: str, action: str, note: str) -> None:
        """Log a warning and record an event about the object.

        Args:
            about: an IPAddress, if `action` is "IPAddressAllocation"; else a Service.
            reason: the reason of the event.
            action: the action of the event.
            note: the text of the event.
        """
        log.warning("%s: %s", reason, note)
        kind = (
            {"kind": "IPAddress", "apiVersion": "networking.k8s.io/v1"}
            if action == _ADDRESS
            else {"kind": "Service", "apiVersion": "v1"}
        )
        await self._events.record_warning({**kind, **about}, reason, action, note)

    async def _live(self, address: str) -> Object | None:
        """Read the IPAddress from the API; return None if it does not exist.

        Raises:
            StatusError: the server returned an error other than 404.
            Unavailable: the server cannot be reached.
        """
        return await get_or_none(self._client, IP_ADDRESSES, "", address)

    async def _live_service(self, namespace: str, name: str) -> Object | None:
        """Read the service from the API; return None if it does not exist, or if its name or namespace is "".

        Raises:
            StatusError: the server returned an error other than 404.
            Unavailable: the server cannot be reached.
        """
        return await get_or_none(self._client, SERVICES, namespace, name) if namespace and name else None

    async def _recreate(self, address: str, service: Object) -> None:
        stored = await self._live(address)
        if stored is not None:
            await self._delete(stored)
        await self._client.create(
            IP_ADDRESSES, "", ip_address(address, service["metadata"]["namespace"], service["metadata"]["name"])
        )

    async def _delete(self, held: Object) -> None:
        try:
            options = {"preconditions": {"uid": held["metadata"]["uid"]}}
            await self._client.delete(IP_ADDRESSES, "", held["metadata"]["name"], options)
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def _belongs_to(address: Object, service: Object) -> bool:
    """Return whether the IPAddress refers to the service and has the labels of its IP family and manager."""
    parent = (address.get("spec") or {}).get("parentRef") or {}
    meta, labels = service["metadata"], address["metadata"].get("labels") or {}
    reference = tuple(parent.get(key) or "" for key in ("group", "resource", "namespace", "name"))
    return reference == ("", "services", meta["namespace"], meta["name"]) and (
        labels_of(address["metadata"]["name"]).items() <= labels.items()
    )


def _cluster_ips(service: Object) -> list[str]:
    """Return the valid cluster IPs of a service in canonical form; [] for headless services and type ExternalName."""
    return [str(address) for text in _requested_ips(service) if (address := parse_sloppy(text)) is not None]


def _requested_ips(service: Object) -> list[str]:
    """Return the cluster IPs of a service as they are stored; [] for headless services and type ExternalName."""
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") in (None, "", "None"):
        return []
    return list(spec.get("clusterIPs") or [spec["clusterIP"]])
