"""The reconcilers of the endpoints of the service `kubernetes`: by leases, by a fixed count, or none.

Upstream: pkg/controlplane/reconcilers/{lease,instancecount,none}.go, `--endpoint-reconciler-type`.
"""

from __future__ import annotations

from typing import Protocol

from tetrapod.generic.server.kubernetes_service.leases import PeerLeases
from tetrapod.generic.server.kubernetes_service.objects import KubernetesEndpoints


class EndpointReconciler(Protocol):
    """A way to maintain the endpoints."""

    async def reconcile(self) -> None:
        """Make the endpoints include this server and no stopped ones. Raises StatusError and Unavailable."""
        ...

    async def remove(self) -> None:
        """Remove this server from the endpoints."""
        ...


class LeaseReconciler:
    """The type `lease`: every server writes the addresses of all that have a lease.

    Crashed servers are therefore removed by the others.
    """

    def __init__(self, endpoints: KubernetesEndpoints, leases: PeerLeases, address: str) -> None:
        self._endpoints = endpoints
        self._leases = leases
        self._address = address

    async def reconcile(self) -> None:
        await self._leases.renew(self._address)
        alive = await self._leases.addresses()
        if not alive:
            raise OSError(
                "no API server IP addresses were listed in storage, refusing to erase all endpoints for the "
                "kubernetes Service"
            )
        await self._endpoints.put(await self._endpoints.get(), alive)

    async def remove(self) -> None:
        await self._leases.remove(self._address)
        current = await self._endpoints.get()
        if current is not None:
            await self._endpoints.put(current, await self._leases.addresses())


class CountReconciler:
    """The type `master-count`: at most `count` servers are listed.

    One that would exceed it replaces the next address in sorted order.
    """

    def __init__(self, endpoints: KubernetesEndpoints, address: str, count: int) -> None:
        self._endpoints = endpoints
        self._address = address
        self._count = count

    async def reconcile(self) -> None:
        current = await self._endpoints.get()
        named = self._endpoints.addresses_of(current) if current is not None else None
        addresses = sorted({*(named or []), self._address})
        while len(addresses) > self._count:
            del addresses[(addresses.index(self._address) + 1) % len(addresses)]
        await self._endpoints.put(current, addresses)

    async def remove(self) -> None:
        current = await self._endpoints.get()
        if current is not None:
            named = self._endpoints.addresses_of(current) or []
            await self._endpoints.put(current, [address for address in named if address != self._address])


class NoReconciler:
    """The type `none`: the Endpoints are maintained externally."""

    async def reconcile(self) -> None:
        return

    async def remove(self) -> None:
        return
