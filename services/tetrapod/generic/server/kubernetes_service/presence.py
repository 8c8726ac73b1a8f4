"""`EndpointPresence`: keeps the address of this aggregator in the endpoints of the Service `kubernetes`.

It is there from when the aggregator is ready until it begins to stop.
Upstream: pkg/controlplane/controller/kubernetesservice/controller.go
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.generic.client.periodic import every
from tetrapod.generic.lifecycle import Lifecycle, Unavailable
from tetrapod.generic.server.kubernetes_service.reconcilers import EndpointReconciler
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

INTERVAL: Final = 10.0
_TRIES: Final = 5


def may_be_endpoint(address: str) -> bool:
    """Return whether an Endpoints object may contain an IP address (upstream: ValidateEndpointIP).

    Return False if the text is not an IP address.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (ip.is_unspecified or ip.is_loopback or ip.is_link_local or ip.is_multicast)


class EndpointPresence:
    """The controller that keeps the address of this aggregator in the endpoints of the Service `kubernetes`.

    Args:
        reconciler: writes the endpoints, as --endpoint-reconciler-type configures.
    """

    def __init__(self, reconciler: EndpointReconciler) -> None:
        self._reconciler = reconciler
        self._writing = asyncio.Lock()
        self._leaving = False

    def start(self, lifecycle: Lifecycle, server_stops: Callable[[], bool]) -> None:
        """Start to reconcile every 10 seconds, and register the hook that removes the address at shutdown.

        Call it after all post-start hooks have returned, so that clients are not sent to a server that is not ready.

        Args:
            lifecycle: runs the hooks.
            server_stops: returns, at shutdown, whether no other process goes on to serve the address.
        """

        async def leave() -> None:
            if server_stops():
                await self.leave()

        lifecycle.background(
            "kubernetes-endpoints", every(INTERVAL, "endpoints of the service kubernetes", self.reconcile)
        )
        lifecycle.on_leaving("stop-kubernetes-service-controller", leave)

    async def reconcile(self) -> None:
        """Add this aggregator to the endpoints, unless `leave` was called.

        Raises:
            StatusError: the server rejected the request.
            Unavailable: the API server or the store cannot be reached.
            OSError: the store has the address of no API server.
        """
        async with self._writing:
            if not self._leaving:
                await _retry_conflicts(self._reconciler.reconcile)

    async def leave(self) -> None:
        """Remove this aggregator from the endpoints. Later calls of `reconcile` do not add it again.

        Errors are logged.
        """
        self._leaving = True
        async with self._writing:
            try:
                await _retry_conflicts(self._reconciler.remove)
            except (StatusError, Unavailable, OSError) as error:
                log.warning("unable to remove endpoints from kubernetes service: %s", error)


async def _retry_conflicts(work: Callable[[], Awaitable[None]]) -> None:
    """Await `work`, and repeat it at most four times while it fails with a 409, because another aggregator wrote first.

    Raises:
        StatusError: the server rejected a request with another code, or five requests with a 409.
        Unavailable: the API server cannot be reached.
    """
    for _ in range(_TRIES - 1):
        try:
            await work()
        except StatusError as error:
            if error.code != 409:
                raise
        else:
            return
    await work()
