"""The metric of the store's size.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics, storage monitor
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Final, Protocol

from tetrapod.generic.metrics.collectors import BEFORE_SCRAPE, Gauge

log = logging.getLogger(__name__)

_SIZE: Final = Gauge(
    "apiserver_storage_size_bytes",
    "Size of the storage database file physically allocated in bytes.",
    ("storage_cluster_id",),
)
_CLUSTER: Final = ("etcd-0",)
"""Upstream's name of the first etcd cluster; there is only one."""
_TIMEOUT: Final = 1.0


class Sized(Protocol):
    """A store that can report its size."""

    async def size(self) -> int: ...


_stores: Final[weakref.WeakSet[Sized]] = weakref.WeakSet()


def register(store: Sized) -> None:
    """Report the size of a store in the metric, for as long as the caller keeps the store (a weak reference)."""
    _stores.add(store)


async def _read_sizes() -> None:
    """Update the metric with the size of every registered store, before a scrape.

    A store that does not answer within a second is left out. A closed store raises errors of its own, hence the broad
    except.
    """
    _SIZE.values.clear()
    for store in list(_stores):
        try:
            async with asyncio.timeout(_TIMEOUT):
                _SIZE.set(_CLUSTER, await store.size())
        except Exception as error:
            log.debug("the size of the store cannot be read: %s", error)


BEFORE_SCRAPE.append(_read_sizes)
