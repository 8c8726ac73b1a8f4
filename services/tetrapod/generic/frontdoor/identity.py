"""`IdentityLease`: every API server holds a Lease in kube-system that says that it is there; those of servers long gone are deleted.

Upstream: pkg/controlplane/apiserver/server.go (start-kube-apiserver-identity-lease-*), pkg/controlplane/controller/leaderelection
and apiserverleasegc. The name is made of the host name, so that a server that starts again takes up its lease; of a service that runs
apart of its name and port too, since a host may have several. Its label says what it is: the front door is the `kube-apiserver`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import uuid
from datetime import timedelta
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every
from tetrapod.generic.client.reading import get_if_there
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now, now_micro, parse_micro

log = logging.getLogger(__name__)

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
NAMESPACE: Final = "kube-system"
LABEL: Final = "apiserver.kubernetes.io/identity"
SERVER: Final = "kube-apiserver"
DURATION: Final = 3600
RENEW_EVERY: Final = 10.0
COLLECT_EVERY: Final = 3600.0


class IdentityLease:
    """`address` (host:port) is what other API servers would reach this one by; `component` and `apart` are of a service that runs apart."""

    def __init__(
        self,
        client: Client,
        hostname: str,
        address: str,
        namespaces_ready: asyncio.Event | None = None,
        *,
        component: str = SERVER,
        apart: str = "",
    ) -> None:
        digest = hashlib.sha256((f"{hostname}/{apart}" if apart else hostname).encode()).digest()[:16]
        self.name = "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()
        self._holder = f"{self.name}_{uuid.uuid4()}"
        self._client, self._hostname, self._address = client, hostname, address
        self._component = component
        self._namespaces_ready = namespaces_ready or asyncio.Event()
        self._held = asyncio.Event()

    def register(self, lifecycle: Lifecycle) -> None:
        async def hold() -> None:
            await self._namespaces_ready.wait()
            try:
                await self.renew()
            except (StatusError, Unavailable, OSError) as error:  # admission may refuse it: no reason not to serve
                log.warning("the lease %s could not be taken: %s", self.name, error)
            self._held.set()
            lifecycle.background("identity-lease", self.keep())

        async def collect() -> None:
            await self._namespaces_ready.wait()
            work = every(COLLECT_EVERY, "identity leases", self.collect, level=logging.DEBUG, at_once=False)
            lifecycle.background("identity-lease-gc", work)

        async def advertise() -> None:
            """The lease tells the others where this server is."""
            await self._held.wait()

        lifecycle.on_start("peer-endpoint-reconciler-controller", advertise)
        lifecycle.on_start("start-kube-apiserver-identity-lease-controller", hold)
        lifecycle.on_start("start-kube-apiserver-identity-lease-garbage-collector", collect)

    async def keep(self) -> None:
        """Where no hook of the start waits for it: from when there is somebody to hold it at, until cancelled."""
        await every(RENEW_EVERY, f"identity lease {self.name}", self.renew, level=logging.DEBUG)

    async def renew(self) -> None:
        """Take the lease, or say that it is still held."""
        wanted = {"holderIdentity": self._holder, "leaseDurationSeconds": DURATION, "renewTime": now_micro()}
        labels = {LABEL: self._component, "kubernetes.io/hostname": self._hostname}
        annotations = {"kubernetes.io/peer-advertise-address": self._address}
        current = await get_if_there(self._client, LEASES, NAMESPACE, self.name)
        if current is None:
            metadata = {"name": self.name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations}
            lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": wanted}
            await self._client.create(LEASES, NAMESPACE, lease)
            return
        meta = current["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), **labels}
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        await self._client.update(LEASES, NAMESPACE, {**current, "spec": wanted})

    async def collect(self) -> None:
        """Delete the leases that nobody has renewed for as long as they last."""
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
