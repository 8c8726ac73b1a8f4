"""`LeaseLock`: the Lease that names the leader (upstream: client-go/tools/leaderelection/resourcelock/leaselock.go)."""

from __future__ import annotations

import socket
import uuid
from typing import Final

from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")
_RECORD: Final = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")


class LeaseLock:
    """The Lease of a leader election. A record is a dictionary with the fields of the Lease's spec.

    Updates include the resource version that was last read or written, so one of two concurrent updates fails.

    Args:
        client: reads and writes the Lease.
        namespace: the namespace of the Lease.
        name: the name of the Lease.
        identity: the holderIdentity of this replica; "" for the host name with a random UUID.
    """

    def __init__(self, client: Client, namespace: str, name: str, identity: str = "") -> None:
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.name = name
        self._client = client
        self._namespace = namespace
        self._lease: Object | None = None
        self._events = EventRecorder(client, name)

    def __str__(self) -> str:
        return f"{self._namespace}/{self.name}"

    async def get(self) -> Object:
        """Read the Lease and return its record.

        Raises:
            StatusError: 404 if the Lease does not exist.
            Unavailable: the API server cannot be reached.
        """
        self._lease = await self._client.get(LEASES, self._namespace, self.name)
        return _record(self._lease)

    async def create(self, record: Object) -> None:
        """Create the Lease with this record as its spec.

        Raises:
            StatusError: 409 if the Lease exists.
            Unavailable: the API server cannot be reached.
        """
        metadata = {"name": self.name, "namespace": self._namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": record}
        self._lease = await self._client.create(LEASES, self._namespace, lease)

    async def update(self, record: Object) -> None:
        """Replace the Lease's spec by the record.

        Raises:
            RuntimeError: neither `get` nor `create` has succeeded before.
            StatusError: 409 if another replica changed the Lease since it was last read or written.
            Unavailable: the API server cannot be reached.
        """
        if self._lease is None:
            raise RuntimeError("lease not initialized, call get or create first")
        self._lease = await self._client.update(LEASES, self._namespace, {**self._lease, "spec": record})

    async def record_event(self, message: str) -> None:
        """Create an Event about the Lease with the note `IDENTITY MESSAGE`.

        Do nothing before the first `get` or `create`.
        """
        if self._lease is not None:
            await self._events.record_normal(
                self._lease, "LeaderElection", "LeaderElection", f"{self.identity} {message}"
            )


def _record(lease: Object) -> Object:
    spec = lease.get("spec") or {}
    return {key: spec[key] for key in _RECORD if key in spec}
