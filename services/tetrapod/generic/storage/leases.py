"""`LeaseManager`: shares one lease among many short-lived objects (events), instead of creating one for each.

A lease lasts a little longer than requested. It is reused as long as its remaining lifetime is not shorter than the
TTL of the next object.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.storage.backend import Backend

REUSE_SECONDS: Final = 60
REUSE_SHARE: Final = 0.05
MOST_OBJECTS: Final = 1000

_OBJECTS: Final = Histogram(
    "etcd_lease_object_counts",
    "Number of objects attached to a single etcd lease.",
    (),
    (10, 50, 100, 500, 1000, 2500, 5000),
)


class LeaseManager:
    """The leases of one store for objects with a TTL. Objects that expire at nearly the same time share a lease.

    Args:
        backend: the store that grants the leases.
        clock: returns the current time in seconds.
    """

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._clock = clock
        self._lease = 0
        self._expires = 0.0
        self._objects = 0

    async def lease(self, ttl: int) -> int:
        """Return the ID of a lease that lasts at least `ttl` seconds, for one more object.

        It lasts at most 5 % longer than `ttl`, and at most 60 seconds longer. The store is asked for a new lease if the
        last one does not fit or has 1000 objects.

        Raises:
            Unavailable: the store does not answer.
        """
        now = self._clock()
        spare = min(REUSE_SECONDS, int(ttl * REUSE_SHARE))
        self._objects += 1
        if now + ttl < self._expires < now + ttl + spare and self._objects <= MOST_OBJECTS:
            return self._lease
        lease = await self._backend.grant_lease(ttl + spare)
        _OBJECTS.observe((), self._objects)
        self._lease, self._expires, self._objects = lease, now + ttl + spare, 1
        return lease

    def forget(self) -> None:
        """Stop reusing the current lease, because the store reported that it has expired."""
        self._expires = 0.0
