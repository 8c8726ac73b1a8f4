"""The reconcilers of the endpoints of the Service `kubernetes`, one for each value of --endpoint-reconciler-type.

Upstream: pkg/controlplane/reconcilers/{lease,instancecount,none}.go
"""

from __future__ import annotations

from typing import Protocol

from tetrapod.generic.server.kubernetes_service.leases import PeerLeases
from tetrapod.generic.server.kubernetes_service.objects import KubernetesEndpoints


class EndpointReconciler(Protocol):
    """An algorithm that maintains the endpoints of the Service `kubernetes`."""

    async def reconcile(self) -> None:
        """Add this server to the endpoints, and remove servers that no longer run.

        Raises:
            StatusError: 409, another aggregator writes at the same time; others if the server rejected a request.
            Unavailable: the API server or the store cannot be reached.
            OSError: the store has no address at all.
        """
        ...

    async def remove(self) -> None:
        """Remove this server from the endpoints.

        Raises:
            StatusError: 409, another aggregator writes at the same time; others if the server rejected a request.
            Unavailable: the API server or the store cannot be reached.
        """
        ...


class LeaseReconciler:
    """The type `lease`: the endpoints are the servers that have a key in `PeerLeases`.

    Every server writes the addresses of all, so crashed servers are removed by the others. `address` is that of this
    server.
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
        await self._endpoints.put(await self._endpoints.get(), alive, self._address)

    async def remove(self) -> None:
        await self._leases.remove(self._address)
        current = await self._endpoints.get()
        if current is not None:
            await self._endpoints.put(current, await self._leases.addresses(), self._address)


class CountReconciler:
    """The type `master-count`: this server adds itself, and at most `count` servers are listed.

    If there are more, those that follow this server's address in sorted order are removed; the first address follows
    the last one.
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
        await self._endpoints.put(current, addresses, self._address)

    async def remove(self) -> None:
        current = await self._endpoints.get()
        if current is not None:
            named = self._endpoints.addresses_of(current) or []
            others = [address for address in named if address != self._address]
            await self._endpoints.put(current, others, self._address)


class NoReconciler:
    """The type `none`: the endpoints are maintained externally, so both methods do nothing."""

    async def reconcile(self) -> None:
        return

    async def remove(self) -> None:
        return
