"""How large the store is (upstream: the storage monitor of k8s.io/apiserver/pkg/storage/etcd3/metrics)."""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Final, Protocol

from tetrapod.generic.metrics import BEFORE_SCRAPE, Gauge

log = logging.getLogger(__name__)

_SIZE: Final = Gauge(
    "apiserver_storage_size_bytes", "Size of the storage database file physically allocated in bytes.", ("storage_cluster_id",)
)
_CLUSTER: Final = ("etcd-0",)
"""Upstream's name of the first store; there is one."""
_PATIENCE: Final = 1.0


class Sized(Protocol):
    async def size(self) -> int: ...


_stores: Final[weakref.WeakSet[Sized]] = weakref.WeakSet()


def known(store: Sized) -> None:
    _stores.add(store)


async def _ask() -> None:
    """A store that does not answer in time has no size, and one that is closed says so in its own way."""
    _SIZE.values.clear()
    for store in list(_stores):
        try:
            async with asyncio.timeout(_PATIENCE):
                _SIZE.set(_CLUSTER, await store.size())
        except Exception as error:
            log.debug("the size of the store is not known: %s", error)


BEFORE_SCRAPE.append(_ask)
