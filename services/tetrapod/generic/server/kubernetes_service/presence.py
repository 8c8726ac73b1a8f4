"""`EndpointPresence`: lists this aggregator in the endpoints of the service `kubernetes`.

The aggregator is listed from when it is ready until it begins to stop.

Upstream: pkg/controlplane/controller/kubernetesservice/controller.go.
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
    """Return whether an Endpoints object may contain the address (upstream: ValidateEndpointIP)."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (ip.is_unspecified or ip.is_loopback or ip.is_link_local or ip.is_multicast)


class EndpointPresence:
    """Keeps the address of this aggregator in the endpoints of the Service `kubernetes`."""

    def __init__(self, reconciler: EndpointReconciler) -> None:
        self._reconciler = reconciler
        self._writing = asyncio.Lock()
        self._leaving = False

    def start(self, lifecycle: Lifecycle) -> None:
        """Start the reconciliation.

        To be called after all post-start hooks have returned, so that clients are not sent to a server that is not
        ready.
        """
        lifecycle.background(
            "kubernetes-endpoints", every(INTERVAL, "endpoints of the service kubernetes", self.reconcile)
        )
        lifecycle.on_leaving("stop-kubernetes-service-controller", self.leave)

    async def reconcile(self) -> None:
        """Add this aggregator to the endpoints, unless it has left. Raises StatusError and Unavailable."""
        async with self._writing:
            if not self._leaving:
                await _until_first(self._reconciler.reconcile)

    async def leave(self) -> None:
        """Remove this aggregator from the endpoints."""
        self._leaving = True
        async with self._writing:
            try:
                await _until_first(self._reconciler.remove)
            except (StatusError, Unavailable, OSError) as error:
                log.warning("unable to remove endpoints from kubernetes service: %s", error)


async def _until_first(work: Callable[[], Awaitable[None]]) -> None:
    """Call `work`, and repeat it if another aggregator changed the object in between (409).

    Raises:
        StatusError: the last attempt failed.
        Unavailable: the API server cannot be reached.
    """
    for _ in range(_TRIES):
        try:
            await work()
        except StatusError as error:
            if error.code != 409:
                raise
        else:
            return
