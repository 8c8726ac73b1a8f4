"""`IdentityLease`: a Lease in kube-system for every API server; expired ones are deleted.

The name is derived from the host name, so that a restarted server reuses its Lease. For a service that runs as a
separate process it is also derived from the service's name and port, because a host may run several. The label is the
component; the aggregator is `kube-apiserver`.
Upstream: pkg/controlplane/apiserver/server.go (start-kube-apiserver-identity-lease-*);
pkg/controlplane/controller/leaderelection; apiserverleasegc
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from datetime import timedelta
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every, periodic_hook
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.server_identity import identity_of
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.timestamps import now, now_micro, parse_micro

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
NAMESPACE: Final = "kube-system"
LABEL: Final = "apiserver.kubernetes.io/identity"
SERVER: Final = "kube-apiserver"
PEER_ADDRESS: Final = "kubernetes.io/peer-advertise-address"
"""The annotation with the host:port at which peers reach a server."""
DURATION: Final = 3600
_GATE: Final = "APIServerIdentity"
RENEW_EVERY: Final = 10.0
COLLECT_EVERY: Final = 3600.0


class IdentityLease:
    """The identity Lease of one process of the API server, in kube-system.

    Its name contains a hash of the host name and of the process name, or of `kube-apiserver` without one. So the
    processes on one host have different Leases, and a restarted process takes over its former one.

    Args:
        client: the client for the Lease.
        hostname: the host name, also the value of the label kubernetes.io/hostname.
        address: host:port at which other API servers can reach this one.
        namespaces_ready: set once kube-system exists; None if `register` is not called.
        component: the value of the label apiserver.kubernetes.io/identity.
        process_name: `SERVICE:PORT` of a service that runs as a separate process; "" for the aggregator.
        renewed_elsewhere: whether another process of the same server maintains the Lease.
    """

    def __init__(
        self,
        client: Client,
        hostname: str,
        address: str,
        namespaces_ready: asyncio.Event | None = None,
        *,
        component: str = SERVER,
        process_name: str = "",
        renewed_elsewhere: bool = False,
    ) -> None:
        self.name = identity_of(hostname, process_name or SERVER)
        self._holder = f"{self.name}_{uuid.uuid4()}"
        self._client, self._hostname, self._address = client, hostname, address
        self._component = component
        self._renewed_elsewhere = renewed_elsewhere
        self._namespaces_ready = namespaces_ready or asyncio.Event()
        self._held = asyncio.Event()

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hooks that maintain the Lease and delete expired ones.

        The gate `APIServerIdentity` enables them.
        """
        if not feature_gates.enabled(_GATE):
            return
        keep = periodic_hook(
            lifecycle, f"identity lease {self.name}", self.renew, RENEW_EVERY, after=self._namespaces_ready
        )

        async def start() -> None:
            if self._renewed_elsewhere:
                await self._namespaces_ready.wait()
            else:
                await keep()
            self._held.set()

        async def collect() -> None:
            await self._namespaces_ready.wait()
            work = every(COLLECT_EVERY, "identity leases", self.collect, level=logging.DEBUG, at_once=False)
            lifecycle.background("identity-lease-gc", work)

        async def advertise() -> None:
            """Wait until the Lease, which has the address of this server, is written."""
            await self._held.wait()

        if feature_gates.enabled("UnknownVersionInteroperabilityProxy"):
            lifecycle.on_start("peer-endpoint-reconciler-controller", advertise)
        lifecycle.on_start("start-kube-apiserver-identity-lease-controller", start)
        lifecycle.on_start("start-kube-apiserver-identity-lease-garbage-collector", collect)

    async def keep(self) -> None:
        """Renew the Lease every 10 seconds until cancelled. Failures are logged at debug level.

        It is for services without a post-start hook for the Lease.
        """
        if feature_gates.enabled(_GATE):
            await every(RENEW_EVERY, f"identity lease {self.name}", self.renew, level=logging.DEBUG)

    async def renew(self) -> None:
        """Create the Lease, or set its renewTime to now.

        Raises:
            StatusError: the server rejected the request.
            Unavailable: the API server cannot be reached.
        """
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": DURATION, "renewTime": now_micro()}
        labels = {LABEL: self._component, "kubernetes.io/hostname": self._hostname}
        peers = feature_gates.enabled("UnknownVersionInteroperabilityProxy")
        annotations = {PEER_ADDRESS: self._address} if peers else {}
        current = await get_or_none(self._client, LEASES, NAMESPACE, self.name)
        if current is None:
            metadata = {"name": self.name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations}
            lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}
            await self._client.create(LEASES, NAMESPACE, lease)
            return
        meta = current["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), **labels}
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        await self._client.update(LEASES, NAMESPACE, {**current, "spec": spec})

    async def collect(self) -> None:
        """Delete the expired identity Leases of all servers.

        Raises:
            StatusError: the server rejected a request.
            Unavailable: the API server cannot be reached.
        """
        page = await self._client.list(LEASES, NAMESPACE, labelSelector=LABEL)
        for lease in page.get("items") or ():
            if _expired(lease):
                meta = lease["metadata"]
                preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
                await self._client.delete(LEASES, NAMESPACE, meta["name"], {"preconditions": preconditions})


def _expired(lease: Object) -> bool:
    spec = lease.get("spec") or {}
    renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    return not renewed or not duration or parse_micro(renewed) + timedelta(seconds=duration) < now()
