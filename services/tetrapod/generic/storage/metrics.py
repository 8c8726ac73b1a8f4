"""Storage metrics of each resource.

The `etcd_…` metrics count requests to the store, whether it is etcd or SQLite, because dashboards for kube-apiserver
read them.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/metrics, pkg/storage/cacher/metrics
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.metrics.counters import Counter, GaugeFunction
from tetrapod.generic.metrics.histograms import LATENCY_BUCKETS, Histogram
from tetrapod.generic.storage.backend import Backend, BackendWatch, KeyValue, Range, WriteResult
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.latency import add_store_latency
from tetrapod.generic.storage.wrappers import ForwardingBackend

_LABELS: Final = ("operation", "group", "resource")
_OF: Final = ("group", "resource")
_SECONDS: Final = Histogram(
    "etcd_request_duration_seconds",
    "Etcd request latency in seconds for each operation and object type.",
    _LABELS,
    LATENCY_BUCKETS,
)
_TOTAL: Final = Counter("etcd_requests_total", "Etcd request counts for each operation and object type.", _LABELS)
_ERRORS: Final = Counter(
    "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", _LABELS
)
_STORAGE: Final = (*_OF, "storage")
LISTS: Final = Counter(
    "apiserver_storage_list_total", "Number of LIST requests served from storage", (*_STORAGE, "index")
)
FETCHED: Final = Counter(
    "apiserver_storage_list_fetched_objects_total",
    "Number of objects read from storage in the course of serving a LIST request",
    (*_STORAGE, "index"),
)
_EVALUATED: Final = Counter(
    "apiserver_storage_list_evaluated_objects_total",
    "Number of objects tested in the course of serving a LIST request from storage",
    _STORAGE,
)
RETURNED: Final = Counter(
    "apiserver_storage_list_returned_objects_total",
    "Number of objects returned for a LIST request from storage",
    _STORAGE,
)
_LIST_SECONDS: Final = Histogram(
    "apiserver_storage_list_duration_seconds",
    "Latency of the storage layer GetList call in seconds, including object decode, split by whether etcd RangeStream "
    "was used.",
    ("streamed", *_OF),
    _SECONDS.buckets,
)


class Lists:
    """The list metrics of one resource: requests, and objects that are read, tested against selectors and returned.

    For lists from the cache, objects tested against selectors are not counted, as upstream.
    """

    def __init__(self, group: str, resource: str) -> None:
        self._labels = (group, resource)
        self._cache, self._store = (group, resource, "watchcache"), (group, resource, "etcd")
        self._store_index = (*self._store, "")
        self._seconds = ("false", group, resource)

    def cached(self, fetched: int, returned: int, field: str = "") -> None:
        """Count a list that was answered from the cache.

        Args:
            fetched: the number of objects before selectors and limit were applied.
            returned: the number of objects in the response.
            field: the field by whose index the objects were fetched; "" if they were fetched without an index.
        """
        labels = (*self._cache, field and f"f:{field}")
        LISTS.add(labels)
        FETCHED.add(labels, fetched)
        _EVALUATED.add(self._cache, 0)
        RETURNED.add(self._cache, returned)

    def stored(self, fetched: int, evaluated: int, returned: int, seconds: float) -> None:
        """Count a list that was answered from the store.

        Args:
            fetched: the number of objects read from the store.
            evaluated: the number of objects tested against the selectors.
            returned: the number of objects in the response.
            seconds: the duration of the whole list.
        """
        LISTS.add(self._store_index)
        FETCHED.add(self._store_index, fetched)
        _EVALUATED.add(self._store, evaluated)
        RETURNED.add(self._store, returned)
        _LIST_SECONDS.observe(self._seconds, seconds)


_OPERATIONS: Final = ("get", "list", "listWithCount", "listOnlyKeys", "create", "update", "delete")


class Measured(ForwardingBackend):
    """A `Backend` wrapper that counts and times the requests of one resource to the store. Watches are not counted.

    Args:
        backend: the store. `close` closes it.
        config: names the resource in the metrics.
    """

    def __init__(self, backend: Backend, config: StorageConfig) -> None:
        super().__init__(backend)
        group, resource = config.group_resource
        self._get, self._list, self._count, self._keys, self._create, self._update, self._delete = (
            _Operation((operation, group, resource)) for operation in _OPERATIONS
        )
        self.close = backend.close

    async def get(self, key: str) -> KeyValue | None:
        with self._get():
            return await self._inner.get(key)

    async def range(
        self,
        start: str,
        end: str,
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        counted: bool = True,
    ) -> Range:
        with (self._count if count_only else self._keys if keys_only else self._list)():
            return await self._inner.range(
                start, end, limit=limit, revision=revision, keys_only=keys_only, count_only=count_only, counted=counted
            )

    async def put_if(
        self, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        with (self._update if expected else self._create)():
            return await self._inner.put_if(key, value, expected, lease=lease, deleting=deleting)

    async def delete_if(self, key: str, expected: int) -> WriteResult:
        with self._delete():
            return await self._inner.delete_if(key, expected)

    def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AbstractAsyncContextManager[BackendWatch]:
        return self._inner.watch(start, end, from_revision, previous=previous)


class _Operation:
    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels

    def __call__(self) -> _Timing:
        return _Timing(self._labels)


class _Timing:
    """A context manager that times and counts one request, and counts it as an error if it raises.

    Args:
        labels: the operation, the API group and the plural name of the resource.
    """

    __slots__ = ("_began", "_labels")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        seconds = time.perf_counter() - self._began
        _SECONDS.observe(self._labels, seconds)
        add_store_latency(seconds)
        _TOTAL.add(self._labels)
        if kind is not None:
            _ERRORS.add(self._labels)


class _Cached(Protocol):
    """The attributes and methods of a `Cacher` that are read when metrics are scraped."""

    config: StorageConfig

    def statistics(self) -> tuple[int, int] | None: ...

    def capacity(self) -> int: ...

    @property
    def revision(self) -> int: ...


_cachers: Final[weakref.WeakSet[_Cached]] = weakref.WeakSet()


def register(cacher: _Cached) -> None:
    """Report the gauges of a cacher when metrics are scraped, for as long as it exists (a weak reference)."""
    _cachers.add(cacher)


def _gauge_values(read: Callable[[_Cached, tuple[int, int]], float]) -> list[tuple[tuple[str, ...], float]]:
    """Return the labels and gauge values of all filled cachers, sorted by group and resource.

    If two cachers have the same resource, only one of them is reported.

    Args:
        read: computes the value from a cacher and its `statistics()` (number of objects and average size).
    """
    values: dict[tuple[str, ...], float] = {}
    for cacher in list(_cachers):
        statistics = cacher.statistics()
        if statistics is not None:
            values[cacher.config.group_resource] = read(cacher, statistics)
    return sorted(values.items())


def resource_objects() -> list[tuple[tuple[str, ...], float]]:
    """Return the number of objects of each resource with a filled cache, by group and resource."""
    return _gauge_values(lambda _, statistics: float(statistics[0]))


def _sizes() -> list[tuple[tuple[str, ...], float]]:
    """Return the estimated size of the objects of each resource, which is measured for the estimates of lists."""
    if not feature_gates.enabled("SizeBasedListCostEstimate"):
        return []
    return _gauge_values(lambda _, statistics: float(statistics[0] * statistics[1]))


GaugeFunction(
    "apiserver_resource_objects",
    "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be "
    "-1.",
    _OF,
    resource_objects,
)
GaugeFunction(
    "apiserver_resource_size_estimate_bytes",
    "Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized "
    "objects. In case of a fetching error, the value will be -1.",
    _OF,
    _sizes,
)
GaugeFunction(
    "apiserver_watch_cache_resource_version",
    "Current resource version of watch cache broken by resource type. This is truncated to the 15 least significant "
    "digits.",
    _OF,
    lambda: _gauge_values(lambda cacher, _: float(cacher.revision % 10**15)),
)
GaugeFunction(
    "watch_cache_capacity",
    "Total capacity of watch cache broken by resource type.",
    _OF,
    lambda: _gauge_values(lambda cacher, _: float(cacher.capacity())),
)
