"""The metric of the sizes of stores.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics, storage monitor
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Sequence
from typing import Final, Protocol

from tetrapod.generic.metrics.counters import Gauge
from tetrapod.generic.metrics.registry import BEFORE_SCRAPE

log = logging.getLogger(__name__)

_SIZE: Final = Gauge(
    "apiserver_storage_size_bytes",
    "Size of the storage database file physically allocated in bytes.",
    ("storage_cluster_id",),
)
_TIMEOUT: Final = 1.0


class Sized(Protocol):
    """A store that can return its size in bytes, for the metric."""

    async def size(self) -> int: ...


_stores: Final[weakref.WeakKeyDictionary[Sized, tuple[str, ...]]] = weakref.WeakKeyDictionary()


def register(stores: Sequence[Sized]) -> None:
    """Report the sizes of stores in the metric, for as long as the caller keeps them (weak references).

    Args:
        stores: the default store, and that of each resource with one of its own. Upstream's names `etcd-0`, `etcd-1`
            and so on follow this order.
    """
    for number, store in enumerate(stores):
        _stores[store] = (*(_stores.get(store, ()) if number else ()), f"etcd-{number}")


async def _read_sizes() -> None:
    """Update the metric with the size of every registered store, before a scrape.

    A store that does not answer within a second is left out. A closed store raises errors of its own, hence the broad
    except.
    """
    _SIZE.values.clear()
    for store, names in list(_stores.items()):
        try:
            async with asyncio.timeout(_TIMEOUT):
                size = await store.size()
            for name in names:
                _SIZE.set((name,), size)
        except Exception as error:
            log.debug("the size of the store cannot be read: %s", error)


BEFORE_SCRAPE.append(_read_sizes)
